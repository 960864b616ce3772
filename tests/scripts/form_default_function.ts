export default async function (i) { return i.n + 5 }
