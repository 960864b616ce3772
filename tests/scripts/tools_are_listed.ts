return {
  servers: Object.keys(tools),
  has: ["mock" in tools, "nope" in tools, "echo" in mock, "nope" in mock],
  some: Object.keys(tools.otherServer),
  same: tools.mock.echo === mock.echo,
  name: mock.echo.name,
  awaited: (await tools) === tools && (await mock) === mock,
  text: `${Object.prototype.toString.call(tools)} ${Object.prototype.toString.call(mock)}`,
};
