return { found: mock };
