// Connects a client on the official TypeScript SDK to a server over pipes, and hides the differences between the SDK's
// versions.

/** What no request takes longer than. */
export const WAIT = { timeout: 90_000 };

/**
 * SDK: `v1`; `v2` with a handshake; `v2-auto`, which asks for the newest revision first. With `sample`, the client has a
 * model, which answers `sampling/createMessage`.
 */
export async function connect(sdk, modules, command, args, sample) {
  const load = (path) => import(`${modules}/@modelcontextprotocol/${path}`);
  const info = { name: "interop", version: "1" };
  const pipes = { command, args, env: process.env, stderr: "ignore" };
  const capabilities = sample ? { sampling: {} } : {};
  if (sdk.startsWith("v2")) {
    const { Client } = await load("client/dist/index.mjs");
    const { StdioClientTransport } = await load("client/dist/stdio.mjs");
    const mode = sdk === "v2-auto" ? "auto" : "legacy";
    const client = new Client(info, { capabilities, versionNegotiation: { mode } });
    if (sample) client.setRequestHandler("sampling/createMessage", sample);
    await client.connect(new StdioClientTransport(pipes), WAIT);
    const call = (params) => client.callTool(params, WAIT);
    return { client, call, protocol: client.getNegotiatedProtocolVersion() };
  }
  const { Client } = await load("sdk/dist/esm/client/index.js");
  const { StdioClientTransport } = await load("sdk/dist/esm/client/stdio.js");
  const { CreateMessageRequestSchema } = await load("sdk/dist/esm/types.js");
  const transport = new StdioClientTransport(pipes);
  let protocol;
  transport.setProtocolVersion = (version) => (protocol = version);
  const client = new Client(info, { capabilities });
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, sample);
  await client.connect(transport, WAIT);
  return { client, call: (params) => client.callTool(params, undefined, WAIT), protocol };
}
