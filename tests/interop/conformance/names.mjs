// Lets the conformance suite speak to cx itself: passes HTTP on to `cx serve --http --mode direct`, and calls the tools
// of the fixtures what the suite calls them. cx puts a server's name before its tools, and chooses the keys of
// questions and the addresses of its resources, and gives the prompts of servers to scripts only.
//
//   node names.mjs URL [SCRIPT...]
//
// SCRIPT is a tool that is a saved script. Prints `listening URL`. Nothing else of a request or an answer is changed.
import { createServer, request as send } from "node:http";

const [address, ...scripts] = process.argv.slice(2);
const target = new URL(address);
const prefix = (name) => (scripts.includes(name) ? "scripts__" : "fixtures__");
const OWN = ["executeTypescript", "executePython", "health"];

/** Keys of the fixtures' questions, as the suite calls them. There is one question at a time. */
const KEYS = { test_input_required_result_elicitation: "user_name" };
const KEY = "approval";

/** The prompt that asks before it answers. The prompt of cx asks nothing, so a script gets that of the fixtures. */
const PROMPT = "test_input_required_result_prompt";
const GET_PROMPT = `return await mcp.getPrompt("fixtures", input.name, input.arguments)`;

/** The message in a line, with the value of the script as the prompt. */
function asPrompt(line) {
  const start = line.indexOf("{");
  if (start < 0) return line;
  const message = JSON.parse(line.slice(start));
  const ended = message.result?.structuredContent;
  if (ended?.success) {
    message.result = ended.value;
  } else if (ended) {
    delete message.result;
    message.error = { code: -32603, message: ended.error.message };
  }
  return line.slice(0, start) + JSON.stringify(message);
}

/** The resource that the suite subscribes to: the code of a saved script, which changes when the script is saved. */
const RESOURCES = { "test://watched-resource": "skill://cx/test_sampling/script.ts" };

const server = createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  let body = Buffer.concat(pieces);
  const headers = { ...request.headers, host: request.headers.host };
  let key;
  let isPrompt = false;
  try {
    const message = JSON.parse(body.toString());
    const { name, uri } = message.params ?? {};
    if (typeof uri === "string" && uri in RESOURCES) {
      message.params.uri = RESOURCES[uri];
      body = Buffer.from(JSON.stringify(message));
    }
    if (message.method === "prompts/get" && name === PROMPT) {
      isPrompt = true;
      const { arguments: given, ...others } = message.params;
      const script = { code: GET_PROMPT, input: { name, arguments: given } };
      message.method = "tools/call";
      message.params = { ...others, name: "executeTypescript", arguments: script };
      if (headers["mcp-method"] === "prompts/get") headers["mcp-method"] = "tools/call";
      if (headers["mcp-name"] === name) headers["mcp-name"] = "executeTypescript";
      body = Buffer.from(JSON.stringify(message));
    } else if (message.method === "tools/call" && typeof name === "string" && !OWN.includes(name)) {
      key = KEYS[name];
      message.params.name = prefix(name) + name;
      // Only a header with the same name is changed, so that a wrong header stays wrong.
      if (headers["mcp-name"] === name) headers["mcp-name"] = message.params.name;
      const { inputResponses } = message.params;
      if (key && inputResponses && key in inputResponses) {
        const { [key]: answer, ...others } = inputResponses;
        message.params.inputResponses = { ...others, [KEY]: answer };
      }
      body = Buffer.from(JSON.stringify(message));
    }
  } catch {
    // Not JSON: passed on as it is.
  }
  if (body.length > 0) headers["content-length"] = String(body.length);
  delete headers["transfer-encoding"];
  const options = { host: target.hostname, port: target.port, path: target.pathname, method: request.method, headers };
  const passed = send(options, async (answer) => {
    const { "content-length": _length, ...rest } = answer.headers;
    response.writeHead(answer.statusCode, rest);
    const shown = (text) => {
      if (isPrompt) return asPrompt(text);
      const named = text.replaceAll(/"name":"(fixtures|scripts)__/g, `"name":"`);
      return key ? named.replaceAll(`"${KEY}":{`, `"${key}":{`) : named;
    };
    // Events are lines; what is not a stream is one line.
    let line = "";
    answer.setEncoding("utf8");
    try {
      for await (const piece of answer) {
        const lines = (line + piece).split("\n");
        line = lines.pop();
        for (const whole of lines) response.write(shown(whole) + "\n");
      }
      response.end(shown(line));
    } catch {
      // The client has gone, or cx has closed the connection.
      response.destroy();
    }
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  passed.end(body);
});
server.listen(0, "127.0.0.1", () => {
  console.log(`listening http://127.0.0.1:${server.address().port}${target.pathname}`);
});

// Ends with the test that started it.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
