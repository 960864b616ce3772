return { found: Promise.resolve(1) };
