// A client on the official TypeScript SDK: uses `cx serve` as clients do, and prints its report as one line of JSON.
//
//   node client.mjs SDK NODE_MODULES NOTES COMMAND [ARGUMENT...]
//   node client.mjs SDK NODE_MODULES NOTES ADDRESS
//
// SDK: `old`; `v1`; `v2` with a handshake; `v2-auto`, which asks for the newest revision first. NOTES is the file of
// the upstream server `hangs`.
import { readFileSync } from "node:fs";

const [sdk, modules, notes, command, ...args] = process.argv.slice(2);
const load = (path) => import(`${modules}/${path}`);
const isAddress = command.startsWith("http://");

// The maximum of every wait here.
const MAX_WAIT_MS = 200_000;
const WAIT = { timeout: MAX_WAIT_MS };
// A cancelled call ends long before its script's time limit.
const SOON_MS = 20_000;

/** The questions that the person was asked, and what they answer next. */
const questions = [];
let answers = [];

function answer(request) {
  questions.push(request.params.message.split("\n")[0]);
  return answers.shift();
}

/** Connects, and hides that no two of the SDKs are used alike. */
async function connect() {
  const info = { name: "interop", version: "1" };
  const pipes = { command, args, env: process.env, stderr: "ignore" };
  if (sdk.startsWith("v2")) {
    const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client/dist/index.mjs");
    const { StdioClientTransport } = await load("@modelcontextprotocol/client/dist/stdio.mjs");
    const transport = isAddress
      ? new StreamableHTTPClientTransport(new URL(command))
      : new StdioClientTransport(pipes);
    const client = new Client(info, {
      capabilities: { elicitation: {} },
      versionNegotiation: { mode: sdk === "v2-auto" ? "auto" : "legacy" },
    });
    client.setRequestHandler("elicitation/create", answer);
    await client.connect(transport, WAIT);
    const call = (params, options) => client.callTool(params, { ...WAIT, ...options });
    return { client, call, protocol: client.getNegotiatedProtocolVersion() };
  }
  const at = sdk === "old" ? "sdk-old/dist" : "@modelcontextprotocol/sdk/dist/esm";
  const { Client } = await load(`${at}/client/index.js`);
  const { StdioClientTransport } = await load(`${at}/client/stdio.js`);
  const overHttp = async () => {
    const { StreamableHTTPClientTransport } = await load(`${at}/client/streamableHttp.js`);
    return new StreamableHTTPClientTransport(new URL(command));
  };
  const types = await load(`${at}/types.js`);
  const asks = types.ElicitRequestSchema !== undefined;
  const client = new Client(info, { capabilities: asks ? { elicitation: {} } : {} });
  if (asks) client.setRequestHandler(types.ElicitRequestSchema, answer);
  // This SDK does not report the negotiated revision.
  let protocol;
  const request = client.request.bind(client);
  client.request = async (message, ...rest) => {
    const result = await request(message, ...rest);
    if (message.method === "initialize") protocol = result.protocolVersion;
    return result;
  };
  await client.connect(isAddress ? await overHttp() : new StdioClientTransport(pipes));
  const call = (params, options) => client.callTool(params, undefined, { ...WAIT, ...options });
  return { client, call, protocol };
}

async function until(condition, max = MAX_WAIT_MS) {
  const end = Date.now() + max;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`it never happened: ${condition}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

const { client, call, protocol } = await connect();
const run = (code, options, name = "executeTypescript") => call({ name, arguments: { code } }, options);
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const seen = { protocol, server: client.getServerVersion()?.name };

seen.tools = (await client.listTools()).tools.map((tool) => tool.name);

const picked = ({ isError, content, structuredContent: { success, value, output, error } }) =>
  ({ isError, text: content[0].text, success, value, output, error });
seen.typescript = picked(await run("console.log('seen'); return 6 * 7 as number"));
seen.python = picked(await run("print('seen')\n6 * 7", {}, "executePython"));
seen.failing = picked(await run("const n = 1;\nthrow new RangeError(`no ${n}`)"));

// Cancelling ends the script: these SDKs lose notifications that arrive in one chunk with the answer.
const heard = [];
// On a busy machine it may also be said that the script still runs.
let beats = 0;
const onprogress = ({ progress, message }) => {
  if (message.startsWith("running for ")) beats++;
  else heard.push([Math.round(progress * 1000) - beats, message.replace(/, \d+ ms$/, "")]);
};
const controller = new AbortController();
const calls = "for (let i = 0; i < 2; i++) await tools.well.echo({ i }); call_tool('well', 'fail', {})";
const cancelled = run(`${calls}; await tools.hangs.target({})`, { onprogress, signal: controller.signal });
await until(() => heard.length === 3 && readFileSync(notes, "utf8").includes("executed target"));
controller.abort(new Error("enough"));
seen.cancelled = await cancelled.then(() => "answered", (error) => error.message);
seen.progress = heard;
// The cancellation reaches the upstream server, and the slot is free.
await until(() => readFileSync(notes, "utf8").includes("cancelled "), SOON_MS);
const health = async () => (await call({ name: "health", arguments: {} })).structuredContent;
await until(async () => (await health()).connectionPool.active === 0, SOON_MS);

const ask = "try { return await tools.well.count({}) } catch (error) { return [error.code, error.message] }";
answers = [
  { action: "accept", content: { approve: true } },
  { action: "decline" },
  { action: "accept", content: { approve: false, reason: "not now" } },
  { action: "accept", content: { approve: true } },
];
seen.asked = [];
for (let i = 0; i < 4; i++) seen.asked.push((await run(ask)).structuredContent.value);
seen.questions = questions;

seen.guide = (await read("cx://guide")).split("\n")[0];
const long = (await run("return Array.from({ length: 20000 }, (_, i) => i)")).structuredContent;
const kept = JSON.parse(await read(`cx://runs/${long.runId}/value`));
seen.kept = [long.value === undefined, kept.length, kept.at(-1)];
seen.resources = (await client.listResources()).resources.map(({ uri }) => uri.replace(long.runId, "ID"));

await client.close();
console.log(JSON.stringify(seen));
