return { name: "logo.png", data: new Uint8Array([1, 2, 3]) };
