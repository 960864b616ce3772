// A third-party agent framework in JavaScript: loads the tools of `cx serve` as its agents do, calls them, and prints
// its report as one line of JSON. No language model is needed: its tool calls are written here.
//
//   node agent.mjs FRAMEWORK NODE_MODULES COMMAND [ARGUMENT...]
//
// FRAMEWORK is the name of a function below.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [framework, modules, command, ...args] = process.argv.slice(2);
const env = { ...process.env };
const resolve = createRequire(`${modules}/`).resolve;

/** Imports a package, which is not beside this file. What is found that way has one export, with all others in it. */
async function load(name) {
  const module = await import(pathToFileURL(resolve(name, { paths: [modules] })).href);
  return module.default ?? module;
}

// The maximum of every wait here.
const MAX_WAIT_MS = 140_000;

const INPUT = { n: 42 };
const TYPESCRIPT = "return (await tools.well.echo({ n: input.n })).n";
const PYTHON = "(await tools.well.echo(n=inputs['n']))['n']";

/** The text of content, in whichever form a framework has it. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).join("\n");
  return content.text;
}

// Each framework returns `schemas`, for each tool the JSON schema of its parameters as a model sees it, `call`, which
// returns the text that a model would see, also for an error, and `close`.
const frameworks = {
  async langchain() {
    const { MultiServerMCPClient } = await load("@langchain/mcp-adapters");
    const { convertToOpenAITool } = await load("@langchain/core/utils/function_calling");
    const client = new MultiServerMCPClient({ mcpServers: { cx: { transport: "stdio", command, args, env } } });
    const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
    const schemas = {};
    for (const tool of Object.values(tools)) {
      schemas[tool.name] = convertToOpenAITool(tool).function.parameters;
    }
    const call = async (name, input) => {
      const request = { type: "tool_call", id: "1", name, args: input };
      const answer = await tools[name].invoke(request).catch((error) => error);
      const text = textOf(answer.content ?? answer.message);
      // Text with structured content beside it is shown as JSON of both.
      return text.startsWith('{"type":"text"') ? JSON.parse(text).text : text;
    };
    return { schemas, call, close: () => client.close() };
  },

  async ai_sdk() {
    const { createMCPClient } = await load("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport: Transport } = await load("@ai-sdk/mcp/mcp-stdio");
    const client = await createMCPClient({ transport: new Transport({ command, args, env }) });
    const tools = await client.tools();
    const schemas = {};
    for (const [name, tool] of Object.entries(tools)) {
      schemas[name] = await (await tool.inputSchema).jsonSchema;
    }
    const call = async (name, input) => {
      const options = { messages: [], toolCallId: "1" };
      const answer = await tools[name].execute(input, options).catch((error) => error);
      return textOf(answer.content ?? answer.message);
    };
    return { schemas, call, close: () => client.close() };
  },

  async mcp_use() {
    const { MCPClient } = await load("mcp-use/client");
    const { LangChainAdapter } = await load("mcp-use/adapters");
    const { convertToOpenAITool } = await load("@langchain/core/utils/function_calling");
    const client = MCPClient.fromDict({ mcpServers: { cx: { command, args, env } } });
    await client.createAllSessions();
    const tools = await LangChainAdapter.createTools(client);
    const byName = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
    const schemas = {};
    for (const name of ["executeTypescript", "executePython", "health"]) {
      schemas[name] = convertToOpenAITool(byName[name]).function.parameters;
    }
    const call = async (name, input) => {
      const answer = await byName[name].invoke(input).catch((error) => error.message);
      // An answer is shown as the JSON of the whole result.
      return answer.startsWith("{") ? textOf(JSON.parse(answer).content) : answer;
    };
    return { schemas, call, close: () => client.closeAllSessions() };
  },
};

/** What a model in a strict mode fills in where it has nothing to say. */
const NEUTRAL = { string: "", integer: 0, number: 0, boolean: false, object: {}, array: ["well.*"] };

const overdue = setTimeout(() => {
  console.error("it does not end");
  process.exit(1);
}, MAX_WAIT_MS);

const { schemas, call, close } = await frameworks[framework]();
const firstLine = async (tool, input) => (await call(tool, input)).split("\n")[0];
const parameters = schemas.executeTypescript.properties;
const seen = { tools: Object.keys(schemas).sort(), parameters: Object.keys(parameters).sort() };
seen.typescript = await firstLine("executeTypescript", { code: TYPESCRIPT, input: INPUT });
seen.python = await firstLine("executePython", { code: PYTHON, input: INPUT });
const neutral = Object.entries(parameters).map(([name, { type }]) => [name, NEUTRAL[type]]);
seen.filled = await firstLine("executeTypescript", { ...Object.fromEntries(neutral), code: "return 6 * 7" });
const failing = await call("executeTypescript", { code: "throw new RangeError('no')" });
// In the text of an answer, or in its structured content: frameworks show one or the other.
seen.failing = failing.includes("RUNTIME_ERROR") && /line\W+1\W+column\W+7/.test(failing);
seen.health = (await call("health", {})).replaceAll(" ", "").includes('"healthy":true');
await close();
clearTimeout(overdue);
console.log(JSON.stringify(seen));
