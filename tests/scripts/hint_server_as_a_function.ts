return await mock({ text: "a" });
