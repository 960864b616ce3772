import server, { echo, "with-dashes.and.dots" as dotted } from "mcp:mock";
import * as all from "mcp:other-server";
const dynamic = await import("mcp:mock");
return [
  await echo({ a: 1 }),
  await dotted({ b: 2 }),
  await all.readFile({ c: 3 }),
  await server.echo({ d: 4 }),
  await dynamic.echo({ e: 5 }),
  Object.keys(all),
];
