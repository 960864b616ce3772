const f = (i) => i.n; export default f
