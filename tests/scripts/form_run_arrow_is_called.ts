const run = async (i) => ({ got: i.n })
