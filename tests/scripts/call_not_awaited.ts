[1, 2].forEach(async (n) => {
  await tools.mock.sleep({ ms: 60_000 + n });
});
await tools.mock.echo({});
return "done";
