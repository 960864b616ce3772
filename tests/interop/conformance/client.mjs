// A client for the official conformance suite: `cx`, with a person who follows its messages.
//
//   node client.mjs CX URL
//
// The suite adds the URL of its server and sets MCP_CONFORMANCE_SCENARIO, and MCP_CONFORMANCE_CONTEXT where a scenario
// has more to tell. Exits with 0 if the script of the scenario did what it had to do.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [cx, address] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

/** How often a person signs in before the client stops trying. */
const MAX_SIGN_INS = 3;

const home = mkdtempSync(join(tmpdir(), "cx-conformance-"));
const config = join(home, "mcp.json");
const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: join(home, "cache") };
// No keyring is available.
delete env.DBUS_SESSION_BUS_ADDRESS;

/** What the operator of the scenario has configured. */
async function oauth() {
  const registered = { clientId: context.client_id, clientSecret: context.client_secret };
  switch (scenario) {
    case "auth/basic-cimd":
      return { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" };
    case "auth/pre-registration":
      return { ...registered, issuer: await issuer() };
    case "auth/client-credentials-jwt":
      return {
        clientId: context.client_id,
        privateKey: context.private_key_pem,
        issuer: await issuer(),
        clientCredentials: true,
      };
    case "auth/wif-jwt-bearer": {
      const assertionFile = join(home, "workload.jwt");
      writeFileSync(assertionFile, context.valid_jwt);
      return { clientId: context.client_id, assertionFile, issuer: await issuer(), clientCredentials: true };
    }
    case "auth/enterprise-managed-authorization": {
      const idTokenFile = join(home, "id-token.jwt");
      writeFileSync(idTokenFile, context.idp_id_token);
      const { idp_issuer: identityProvider, idp_client_id: identityClientId } = context;
      const identity = { identityProvider, identityClientId, idTokenFile };
      return { ...registered, ...identity, issuer: await issuer(), clientCredentials: true };
    }
    case "auth/client-credentials-basic":
      return { ...registered, issuer: await issuer(), clientCredentials: true };
    default:
      return undefined;
  }
}

/** The authorization server that the secret is for. An operator knows it; here it is looked up. */
async function issuer() {
  const { origin, pathname } = new URL(address);
  const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  return (await metadata.json()).authorization_servers[0];
}

/** Signs in as a person does: opens the address, and the page sends them back at once. */
async function signIn(scopes) {
  const more = scopes.flatMap((scope) => ["--scope", scope]);
  const login = spawn(cx, ["auth", "login", "server", "--mcp-config", config, "--no-browser", ...more], { env });
  login.stderr.pipe(process.stderr);
  const ended = new Promise((resolve) => login.on("close", resolve));
  for await (const line of createInterface({ input: login.stdout })) {
    if (!/^https?:\/\//.test(line)) continue;
    let page = line;
    for (let hops = 0; page && hops < 5; hops++) {
      const response = await fetch(page, { redirect: "manual" });
      const next = response.headers.get("location");
      page = next && new URL(next, page).href;
    }
  }
  return (await ended) === 0;
}

/** Runs a script through `cx serve`, whose questions are accepted as they are, with every default. */
async function run(code, input) {
  const server = spawn(cx, ["serve", "--mcp-config", config], { env });
  server.stderr.pipe(process.stderr);
  const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  const capabilities = { elicitation: { form: {}, url: {} } };
  const clientInfo = { name: "conformance", version: "1" };
  send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities, clientInfo } });
  let result;
  for await (const line of createInterface({ input: server.stdout })) {
    const message = JSON.parse(line);
    if (message.id === 1 && !message.method) {
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/call", params: { name: "executeTypescript", arguments: { code, input } } });
    } else if (message.id === 2 && !message.method) {
      result = message.result.structuredContent;
      server.stdin.end();
    } else if (message.method === "elicitation/create") {
      send({ id: message.id, result: { action: "accept", content: {} } });
    }
  }
  return result;
}

// A server that does not list its tools is left out of a search; the call says why.
const LIST = `
  let found = await searchTools("", 100);
  if (found.length === 0) {
    await callMCPTool("mcp__server__any").catch((error) => {
      if (error.code !== "TOOL_NOT_FOUND") throw error;
    });
    // The call has waited for the list, which on a busy machine takes longer than a search waits.
    found = await searchTools("", 100);
  }`;

const EVERYTHING = `${LIST}
  const values = { string: "text", number: 2, integer: 3, boolean: true };
  for (const tool of found) {
    const properties = Object.entries(tool.parameters?.properties ?? {});
    const args = Object.fromEntries(properties.map(([name, schema]) => [name, values[schema.type] ?? null]));
    await callMCPTool(tool.name, args);
  }`;

// The files of a skill, if the first of them is not refused.
const LOAD_SKILL = `
  await mcp.listResources("server");
  try {
    await mcp.readResource("server", "skill://pdf-processing/SKILL.md");
  } catch {
    return "refused";
  }
  await mcp.readResource("server", "skill://pdf-processing/references/FORMS.md")`;

/** What the script of a scenario does; most list the tools and call each. */
const scripts = {
  // Servers without tools.
  initialize: `await searchTools("", 100)`,
  "request-metadata": `await searchTools("", 100)`,
  "json-schema-ref-no-deref": LIST,
  "http-custom-headers": `for (const each of input.toolCalls) await callMCPTool("mcp__server__" + each.name, each.arguments)`,
  "http-invalid-tool-headers": `
    ${LIST}
    const names = found.map((tool) => tool.name);
    for (const name of names) await callMCPTool(name, { region: "us" });
    if (names.join() !== "mcp__server__valid_tool") throw new Error("offered: " + names)`,
  "http-standard-headers": `${EVERYTHING}
    for (const { uri } of await mcp.listResources("server")) await mcp.readResource("server", uri);
    for (const { name } of await mcp.listPrompts("server")) await mcp.getPrompt("server", name)`,
  // Its server has no tools.
  "sep-2640-client-no-prefetch": `await mcp.listResources("server")`,
  "sep-2640-client-verify-digest": LOAD_SKILL,
  "sep-2640-client-verify-size": LOAD_SKILL,
  "sep-2640-client-verify-frontmatter": LOAD_SKILL,
  "json-schema-2020-12-preservation": `
    const tool = await getToolSchema("mcp__server__json_schema_2020_12_tool");
    await callMCPTool("mcp__server__json_schema_echo", { schema: tool.inputSchema ?? tool.parameters ?? tool })`,
  "sep-2322-client-request-state": `
    const names = ["echo_state", "unrelated", "no_state", "no_result_type"];
    await Promise.all(names.map((name) => callMCPTool("mcp__server__test_mrtr_" + name, {})))`,
};

async function main() {
  const settings = { type: "http", url: address, oauth: await oauth() };
  writeFileSync(config, JSON.stringify({ mcpServers: { server: settings } }));
  const code = scripts[scenario] ?? EVERYTHING;
  for (let signIns = 0; ; signIns++) {
    const result = await run(code, context);
    if (result.success) return 0;
    const message = result.error?.message ?? "";
    console.error(JSON.stringify(result.error));
    const told = /cx auth login server((?: --scope [^ `]+)*)/.exec(message);
    if (!told || signIns >= MAX_SIGN_INS) return 1;
    const scopes = told[1].split(" --scope ").filter(Boolean);
    if (!(await signIn(scopes))) return 1;
  }
}

main()
  .then((status) => (process.exitCode = status))
  .finally(() => rmSync(home, { recursive: true, force: true }));
