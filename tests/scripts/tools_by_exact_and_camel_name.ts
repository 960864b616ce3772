const exact = await tools["other-server"].read_file({ a: 1 });
const camel = await tools.otherServer.readFile({ a: 2 });
const global = await otherServer.readFile({ a: 3 });
const odd = await mock["with-dashes.and.dots"]({ a: 4 });
const oddCamel = await mock.withDashesAndDots({ a: 5 });
return [exact, camel, global, odd, oddCamel];
