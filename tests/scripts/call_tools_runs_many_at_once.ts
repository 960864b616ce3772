const calls = Array.from({ length: 20 }, (_, i) => ({ server: "mock", tool: "sleep", args: { ms: 20, i } }));
const started = Date.now();
const results = call_tools(calls);
return [results.map((result) => result.result.i), Date.now() - started < 300, call_tools([])];
