return [
  call_tool("mock", "echo", { a: 1 }),
  call_tool("mock", "fail", { message: "no" }),
  call_tool("mock", "nope", {}),
  call_tool("nope", "echo", {}),
  call_tool("mock", "limited"),
  call_tool("mock", "echo", "text"),
  call_tool("mock", "echo", { n: Symbol() }),
  call_tool(1 as any, "echo"),
];
