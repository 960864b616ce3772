return [1, 2].map(async (n) => n);
