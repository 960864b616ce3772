return JSON.parse(await mock.text({ text: "hello" }));
