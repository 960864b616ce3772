// An MCP server over HTTP for the server scenarios of the conformance suite that need fixtures: it passes every request
// through a script to an upstream server. A scenario that passes here has passed all of cx, in both directions.
//
//   node bridge.mjs CX FIXTURES
//
// Prints `listening URL`. Each session has its own `cx serve`, which has the fixtures as its upstream server. The
// questions and the progress that cx sends go to the client of the session, and its answers to cx.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [cx, fixtures] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "cx-bridge-"));
const config = join(home, "mcp.json");
writeFileSync(config, JSON.stringify({ mcpServers: { fixtures: { command: process.execPath, args: [fixtures] } } }));
const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: join(home, "cache") };

/** A script for each method. Its value is the result, but for that of a call, which is made of it. */
const scripts = {
  "tools/list": `
    const found = await searchTools("", 100);
    return { tools: found.map((tool) => ({
      name: tool.name.replace("mcp__fixtures__", ""), description: tool.description, inputSchema: tool.parameters,
    })) }`,
  "tools/call": `return await callMCPTool("mcp__fixtures__" + input.name, input.arguments ?? {})`,
  // The progress of a script is that of its calls, so there are three of them.
  "with progress": `
    for (let calls = 0; calls < 2; calls++) await callMCPTool("mcp__fixtures__" + input.name, input.arguments ?? {});
    return await callMCPTool("mcp__fixtures__" + input.name, input.arguments ?? {})`,
  "resources/list": `return { resources: await mcp.listResources("fixtures") }`,
  "resources/read": `return await mcp.readResource("fixtures", input.uri)`,
  "prompts/list": `return { prompts: await mcp.listPrompts("fixtures") }`,
  "prompts/get": `return await mcp.getPrompt("fixtures", input.name, input.arguments)`,
};

class Session {
  constructor(initialize) {
    this.id = randomUUID();
    this.waiting = new Map();
    this.streams = new Map();
    this.sent = 0;
    this.cx = spawn(cx, ["serve", "--mcp-config", config], { env, stdio: ["pipe", "pipe", "inherit"] });
    this.read();
    this.ready = this.request("initialize", initialize).then(() => this.send({ method: "notifications/initialized" }));
  }

  send(message) {
    this.cx.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  /** `stream` gets what cx sends meanwhile. */
  async request(method, params, stream) {
    const id = ++this.sent;
    if (stream) this.streams.set(id, stream);
    const answer = await new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send({ id, method, params });
    });
    this.streams.delete(id);
    return answer;
  }

  async read() {
    for await (const line of createInterface({ input: this.cx.stdout })) {
      const message = JSON.parse(line);
      if (message.method === undefined) {
        this.waiting.get(message.id)?.(message);
        this.waiting.delete(message.id);
      } else {
        for (const stream of this.streams.values()) stream(message);
      }
    }
  }

  async answer(method, params, stream) {
    if (method === "ping") return { result: {} };
    const { _meta, ...input } = params ?? {};
    const code = scripts[_meta?.progressToken !== undefined && method === "tools/call" ? "with progress" : method];
    if (!code) return { error: { code: -32601, message: "Method not found" } };
    await this.ready;
    const call = { name: "executeTypescript", arguments: { code, input }, _meta };
    const { result, error } = await this.request("tools/call", call, stream);
    if (error) return { error };
    const { success, value, error: failure } = result.structuredContent;
    if (!success && method === "tools/call") {
      return { result: { content: [{ type: "text", text: failure.message }], isError: true } };
    }
    if (!success) return { error: { code: -32603, message: failure.message } };
    if (method !== "tools/call") return { result: value };
    // A script gets a tool's text as text, and its other content as blocks.
    return { result: { content: typeof value === "string" ? [{ type: "text", text: value }] : (value.content ?? value) } };
  }
}

const sessions = new Map();

async function post(request, response) {
  let body = "";
  for await (const piece of request) body += piece;
  const message = JSON.parse(body);
  let session = sessions.get(request.headers["mcp-session-id"]);
  if (message.method === "initialize") {
    session = new Session(message.params);
    sessions.set(session.id, session);
    const { protocolVersion } = message.params;
    const capabilities = { tools: {}, resources: {}, prompts: {} };
    const result = { protocolVersion, capabilities, serverInfo: { name: "bridge", version: "1" } };
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": session.id });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
    return;
  }
  if (!session) {
    response.writeHead(404).end();
    return;
  }
  if (message.method === undefined || message.id === undefined) {
    // An answer to a question of cx keeps the question's id.
    if (message.method === undefined) session.send(message);
    response.writeHead(202).end();
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "mcp-session-id": session.id });
  const write = (message) => response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  const answer = await session.answer(message.method, message.params, write);
  write({ jsonrpc: "2.0", id: message.id, ...answer });
  response.end();
}

const server = createServer((request, response) => {
  if (request.method === "POST") {
    post(request, response).catch((error) => response.destroy(error));
  } else if (request.method === "DELETE") {
    sessions.get(request.headers["mcp-session-id"])?.cx.stdin.end();
    response.writeHead(200).end();
  } else {
    response.writeHead(405).end();
  }
});
server.listen(0, "127.0.0.1", () => console.log(`listening http://127.0.0.1:${server.address().port}/mcp`));

// Ends with the test that started it.
process.stdin.resume();
process.stdin.on("end", () => {
  for (const session of sessions.values()) session.cx.kill();
  rmSync(home, { recursive: true, force: true });
  process.exit(0);
});
