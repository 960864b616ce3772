const f = (i) => i.n; export { f as default }
