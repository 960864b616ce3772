const good = { server: "mock", tool: "echo" };
const batches: [any, any?][] = [
  [[good, "nonsense"]],
  [[good, null]],
  [[good, { server: "mock" }]],
  [[good, { ...good, args: { n: Symbol() } }]],
  [[good], { max_parallel: 0 }],
  [[good], { max_parallel: 1.5 }],
  [[good], { max_parallel: "2" }],
  [[good], 5],
];
return batches.map(([calls, options]) => {
  try {
    return call_tools(calls, options);
  } catch (error) {
    console.log(error.message);
    return error.name;
  }
});
