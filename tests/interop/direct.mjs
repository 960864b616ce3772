// A client on the official TypeScript SDK that calls tools which `cx serve` shows directly, and prints its report as
// one line of JSON.
//
//   node direct.mjs SDK NODE_MODULES COMMAND [ARGUMENT...]
//
// SDK: `v1`; `v2` with a handshake; `v2-auto`, which asks for the newest revision first.
import { WAIT, connect } from "./connect.mjs";

const [sdk, modules, command, ...args] = process.argv.slice(2);
const { client, call } = await connect(sdk, modules, command, args);
// The servers may take longer than the first list waits for them.
let tools = [];
for (const start = Date.now(); Date.now() - start < WAIT.timeout; ) {
  ({ tools } = await client.listTools(undefined, WAIT));
  if (["apps__show_time", "odd__untyped"].every((name) => tools.some((tool) => tool.name === name))) break;
  await new Promise((done) => setTimeout(done, 200));
}
const named = (name) => tools.find((tool) => tool.name === name);
const answer = await call({ name: "apps__show_time", arguments: {} });
const seen = {
  untyped: named("odd__untyped").inputSchema.type,
  odd: tools.filter((tool) => /^odd__odd_[a-z]+$/.test(tool.name)).length,
  time: answer.structuredContent.time,
  texts: answer.content.filter((block) => block.type === "text").map((block) => block.text),
  kept: answer._meta["com.example/kept"],
  address: named("apps__show_time")._meta.ui.resourceUri,
};
console.log(JSON.stringify(seen));
await client.close();
process.exit(0);
