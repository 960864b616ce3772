// An MCP server over stdio with the tools, resources and prompts that the server scenarios of the conformance suite
// expect. By hand, so that what it sends is exactly what a scenario describes. cx calls it as an upstream server.
//
//   node fixtures.mjs [stateless]
//
// With `stateless` it speaks the stateless revision only, in which a server that asks says for which call it does.
import { createInterface } from "node:readline";

const IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
const AUDIO = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

const isStateless = process.argv[2] === "stateless";
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: IMAGE, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const pause = (milliseconds = 50) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** cx makes a task of a call that takes more than two seconds. So that of a tool that the suite expects to be a task takes
 * this much longer. */
const TASK = 2500;

const pending = new Map();
let asked = 0;

function send(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

/** Asks the person at the client, and says what they answered. */
async function elicit(message, properties, required = []) {
  const id = `question-${++asked}`;
  const answered = new Promise((resolve) => pending.set(id, resolve));
  send({ id, method: "elicitation/create", params: { message, requestedSchema: { type: "object", properties, required } } });
  const { result, error } = await answered;
  if (error) throw new Error(error.message);
  return [text(`action=${result.action}, content=${JSON.stringify(result.content)}`)];
}

const select = (...values) => values.map((value) => ({ const: value, title: `Title of ${value}` }));

const tools = {
  test_simple_text: () => [text("A simple text.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: AUDIO, mimeType: "audio/wav" }],
  test_embedded_resource: () => [resource("test://embedded-resource", "text/plain", "An embedded resource.")],
  test_multiple_content_types: () => [
    text("Several types:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data"}'),
  ],
  test_error_handling: () => {
    throw new Error("This tool fails on purpose.");
  },
  test_tool_with_progress: async (_args, progressToken) => {
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        send({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      }
      await pause();
    }
    return [text("done")];
  },
  test_elicitation: ({ message }) => elicit(message, { username: { type: "string" }, email: { type: "string" } }, ["username"]),
  test_elicitation_sep1034_defaults: () =>
    elicit("All have defaults", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  test_elicitation_sep1330_enums: () =>
    elicit("Every kind of choice", {
      untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
      titledSingle: { type: "string", oneOf: select("value1", "value2", "value3") },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
      titledMulti: { type: "array", items: { anyOf: select("value1", "value2", "value3") } },
    }),
};

/** What the scenarios of several rounds, of streams and of tasks call. */
Object.assign(tools, {
  json_schema_2020_12_tool: () => [text("called")],
  test_input_required_result_elicitation: () => elicit("What is your name?", { name: { type: "string" } }, ["name"]),
  test_input_required_result_request_state: async () => [
    ...(await elicit("Please confirm", { ok: { type: "boolean" } }, ["ok"])),
    text("state-ok"),
  ],
  test_input_required_result_multi_round: async () => [
    ...(await elicit("Step 1: What is your name?", { name: { type: "string" } }, ["name"])),
    ...(await elicit("Step 2: What is your favorite color?", { color: { type: "string" } }, ["color"])),
  ],
  test_input_required_result_tampered_state: () => elicit("Please confirm", { ok: { type: "boolean" } }, ["ok"]),
  test_reconnection: async () => {
    await pause();
    return [text("reconnected")];
  },
  greet: ({ name }) => [text(`Hello, ${name}!`)],
  slow_compute: async ({ seconds }) => {
    if (seconds > 0) await pause(TASK + seconds * 1000);
    return [text("done")];
  },
  failing_job: async () => {
    await pause(TASK);
    throw new Error("This job fails on purpose.");
  },
  protocol_error_job: async () => {
    await pause(TASK);
    throw Object.assign(new Error("This server fails on purpose."), { code: -32603 });
  },
  confirm_delete: async ({ filename }) => {
    await pause(TASK);
    return elicit(`Delete ${filename}?`, { confirm: { type: "boolean" } }, ["confirm"]);
  },
  multi_input: async () => {
    await pause(TASK);
    const asked = ["First", "Second"].map((which) => elicit(`${which} name?`, { name: { type: "string" } }, ["name"]));
    return (await Promise.all(asked)).flat();
  },
  test_tool_with_task: async () => {
    const answer = await elicit("What is your name?", { name: { type: "string" } }, ["name"]);
    await pause(TASK);
    return answer;
  },
  test_custom_header: ({ region }) => [text(`region=${region}`)],
});

/** The question of the stateless revision for one text: it is an answer, and the request is repeated. */
function question(message, field) {
  const requestedSchema = { type: "object", properties: { [field]: { type: "string" } }, required: [field] };
  const question = { method: "elicitation/create", params: { message, requestedSchema } };
  return { resultType: "input_required", inputRequests: { question }, requestState: "asked" };
}

/** What asks in the stateless revision. */
const asking = {
  test_input_required_result_elicitation: ({ inputResponses }) => {
    const answer = inputResponses?.question;
    if (!answer) return question("What is your name?", "name");
    return { content: [text(`action=${answer.action}, content=${JSON.stringify(answer.content)}`)] };
  },
};
const askingPrompts = {
  test_input_required_result_prompt: ({ inputResponses }) => {
    const answer = inputResponses?.question;
    if (!answer) return question("What context should the prompt use?", "context");
    return user(text(`context=${answer.content?.context}`));
  },
};

const schemas = {
  json_schema_2020_12_tool: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: { type: "string" }, city: { type: "string" } },
      },
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  },
  confirm_delete: { type: "object", properties: { filename: { type: "string" } }, required: ["filename"] },
  greet: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  slow_compute: { type: "object", properties: { seconds: { type: "number" } }, required: ["seconds"] },
  test_custom_header: {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
    required: ["region"],
  },
  test_elicitation: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
};

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "A text." },
  "test://static-binary": { mimeType: "image/png", blob: IMAGE },
};

function read(uri) {
  const templated = /^test:\/\/template\/([^/]+)\/data$/.exec(uri);
  const found = templated ? { mimeType: "application/json", text: JSON.stringify({ id: templated[1] }) } : resources[uri];
  if (!found) throw Object.assign(new Error("Resource not found"), { code: -32002 });
  return { contents: [{ uri, ...found }] };
}

const user = (content) => ({ messages: [{ role: "user", content }] });
const prompts = {
  test_simple_prompt: () => user(text("A simple prompt.")),
  test_prompt_with_arguments: ({ arg1, arg2 }) => user(text(`arg1='${arg1}', arg2='${arg2}'`)),
  test_prompt_with_embedded_resource: ({ resourceUri }) => user(resource(resourceUri, "text/plain", "Embedded.")),
  test_prompt_with_image: () => user(image),
};
const parameters = {
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
};

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {}, prompts: {} },
    serverInfo: { name: "fixtures", version: "1" },
  }),
  "server/discover": () => ({
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {}, prompts: {} },
    ttlMs: 0,
    cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "fixtures", version: "1" } },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.keys(tools).map((name) => ({
      name,
      description: `The fixture ${name}`,
      inputSchema: schemas[name] ?? { type: "object", properties: {} },
    })),
    ttlMs: 0,
    cacheScope: "private",
  }),
  "tools/call": async (params) => {
    const { name, arguments: args, _meta } = params;
    if (isStateless && name in asking) return asking[name](params);
    try {
      return { content: await tools[name](args ?? {}, _meta?.progressToken) };
    } catch (error) {
      if (error.code !== undefined) throw error;
      return { content: [text(error.message)], isError: true };
    }
  },
  "resources/list": () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri.slice(7), mimeType })),
  }),
  "resources/read": ({ uri }) => read(uri),
  "prompts/list": () => ({
    prompts: Object.keys(prompts).map((name) => ({
      name,
      description: `The fixture ${name}`,
      arguments: (parameters[name] ?? []).map((name) => ({ name, required: true })),
    })),
  }),
  "prompts/get": (params) => {
    const { name, arguments: args } = params;
    return isStateless && name in askingPrompts ? askingPrompts[name](params) : prompts[name](args ?? {});
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    pending.get(message.id)?.(message);
    continue;
  }
  if (message.id === undefined) continue;
  const isOfRevision = message.method !== (isStateless ? "initialize" : "server/discover");
  const method = isOfRevision ? methods[message.method] : undefined;
  if (!method) {
    send({ id: message.id, error: { code: -32601, message: "Method not found" } });
    continue;
  }
  // Not awaited: an answer to a question comes while its call is in flight.
  Promise.resolve()
    .then(() => method(message.params ?? {}))
    .then((result) => send({ id: message.id, result: isStateless ? { resultType: "complete", ...result } : result }))
    .catch((error) => send({ id: message.id, error: { code: error.code ?? -32603, message: error.message } }));
}
