// A client on the official TypeScript SDK whose connection is cut while a script runs. Prints a line for each id of an
// event that it has read, and at the end what the script has returned.
//
//   node cut.mjs SDK NODE_MODULES ADDRESS SOURCE
//
// SDK: `v1`, or `v2` with a handshake.
const [sdk, modules, address, source] = process.argv.slice(2);
const load = (path) => import(`${modules}/@modelcontextprotocol/${path}`);

const { Client, StreamableHTTPClientTransport } = sdk === "v2"
  ? await load("client/dist/index.mjs")
  : { ...await load("sdk/dist/esm/client/index.js"), ...await load("sdk/dist/esm/client/streamableHttp.js") };
const client = new Client({ name: "interop", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(address)));
const call = { name: "executeTypescript", arguments: { code: source } };
const options = { timeout: 200_000, onresumptiontoken: () => console.log("read") };
const result = sdk === "v2" ? await client.callTool(call, options) : await client.callTool(call, undefined, options);
console.log(result.content[0].text);
process.exit(0);
