async function (i: { n: number }) { return i.n * 10 }
