const input = 1; export default (x) => [input, x.n]
