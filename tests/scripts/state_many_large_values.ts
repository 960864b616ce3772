const text = "x".repeat(1_000_000);
await Promise.all(Array.from({ length: 12 }, (_, index) => state.set(`k${index}`, text)));
return (await state.keys()).length;
