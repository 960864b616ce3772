async function main(i) { return i.n }
const y = 9
