setTimeout(() => {
  throw new RangeError("late");
}, 1);
await new Promise((resolve) => setTimeout(resolve, 1_000));
return "not reached";
