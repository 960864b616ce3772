async (i) => i.n + 1
