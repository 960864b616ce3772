export default (i) => i.n
