// Lists the tools of real MCP servers into tools.json, which the judged search test reads.
//
//   node tests/search/collect.mjs DIRECTORY
//
// Installs the pinned packages below into DIRECTORY (npm and pip, no install scripts), starts each
// server over stdio with made-up credentials, asks `initialize` and `tools/list`, and ends it. No tool
// is called. A server that does not answer in time is reported and left out. Prints a table of what
// was listed for README.md.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** How long a server may take from its start to its last page of tools. */
const DEADLINE_MS = 30_000;

/** Longer descriptions are cut: they are manuals, and the file is kept in git. */
const MAX_DESCRIPTION_CHARACTERS = 2_000;

/** Of longer schemas only the parameters' names, types and descriptions are kept, and no output schema. */
const MAX_SCHEMA_CHARACTERS = 1_800;

const UNREACHABLE = "http://127.0.0.1:9";

/** [server's name, package, version, arguments, environment]. */
const NPM = [
  ["brave_search", "@modelcontextprotocol/server-brave-search", "0.6.2", [], { BRAVE_API_KEY: "x" }],
  ["chrome_devtools", "chrome-devtools-mcp", "1.11.0", []],
  ["circleci", "@circleci/mcp-server-circleci", "0.20.0", [], { CIRCLECI_TOKEN: "x" }],
  ["context7", "@upstash/context7-mcp", "4.1.1", []],
  ["elasticsearch", "@elastic/mcp-server-elasticsearch", "0.3.1", [], { ES_URL: UNREACHABLE, ES_API_KEY: "x" }],
  ["everything", "@modelcontextprotocol/server-everything", "2026.8.31", []],
  ["exa", "exa-mcp-server", "3.4.1", [], { EXA_API_KEY: "x" }],
  ["figma", "figma-developer-mcp", "0.13.2", ["--stdio"], { FIGMA_API_KEY: "x" }],
  ["filesystem", "@modelcontextprotocol/server-filesystem", "2026.8.31", ["."]],
  ["firecrawl", "firecrawl-mcp", "3.26.0", [], { FIRECRAWL_API_KEY: "x" }],
  ["github", "@modelcontextprotocol/server-github", "2025.4.8", [], { GITHUB_PERSONAL_ACCESS_TOKEN: "x" }],
  ["gitlab", "@modelcontextprotocol/server-gitlab", "2025.4.25", [], { GITLAB_PERSONAL_ACCESS_TOKEN: "x" }],
  ["google_maps", "@modelcontextprotocol/server-google-maps", "0.6.2", [], { GOOGLE_MAPS_API_KEY: "x" }],
  ["hubspot", "@hubspot/mcp-server", "0.4.0", [], { PRIVATE_APP_ACCESS_TOKEN: "x" }],
  ["kubernetes", "mcp-server-kubernetes", "4.1.7", []],
  ["linear", "linear-mcp-server", "0.1.0", [], { LINEAR_API_KEY: "x" }],
  ["mapbox", "@mapbox/mcp-server", "0.14.0", [], { MAPBOX_ACCESS_TOKEN: "pk.eyJ1IjoieCIsImEiOiJ4In0.x" }],
  ["memory", "@modelcontextprotocol/server-memory", "2026.8.31", []],
  ["mongodb", "mongodb-mcp-server", "3.0.4", ["--connectionString", "mongodb://127.0.0.1:9/x", "--telemetry", "disabled"]],
  ["netlify", "@netlify/mcp", "1.15.1", []],
  ["notion", "@notionhq/notion-mcp-server", "2.5.2", [], { NOTION_TOKEN: "ntn_x" }],
  ["playwright", "@playwright/mcp", "0.0.83", []],
  ["postgres", "@modelcontextprotocol/server-postgres", "0.6.2", ["postgresql://127.0.0.1:9/x"]],
  ["puppeteer", "@modelcontextprotocol/server-puppeteer", "2025.5.12", []],
  ["sequential_thinking", "@modelcontextprotocol/server-sequential-thinking", "2026.8.31", []],
  ["slack", "@modelcontextprotocol/server-slack", "2025.4.25", [], { SLACK_BOT_TOKEN: "xoxb-x", SLACK_TEAM_ID: "T0" }],
  ["tavily", "tavily-mcp", "0.2.22", [], { TAVILY_API_KEY: "x" }],
  ["todoist", "todoist-mcp", "1.3.4", [], { ["todoist_api_key".toUpperCase()]: "x", API_KEY: "x" }],
  ["trello", "@delorenj/mcp-server-trello", "1.8.1", [], { TRELLO_API_KEY: "x", TRELLO_TOKEN: "x" }],
];

/** The same, with the command in place of a package's only one. */
const PYPI = [
  ["arxiv", "arxiv-mcp-server", "0.8.2", ["arxiv-mcp-server"]],
  ["atlassian", "mcp-atlassian", "0.23.1", ["mcp-atlassian"], {
    JIRA_URL: UNREACHABLE, JIRA_USERNAME: "x", JIRA_API_TOKEN: "x",
    CONFLUENCE_URL: UNREACHABLE, CONFLUENCE_USERNAME: "x", CONFLUENCE_API_TOKEN: "x",
  }],
  ["clickhouse", "mcp-clickhouse", "0.7.0", ["mcp-clickhouse"], { CLICKHOUSE_HOST: "127.0.0.1", CLICKHOUSE_USER: "x", CLICKHOUSE_PASSWORD: "x" }],
  ["duckduckgo", "duckduckgo-mcp-server", "0.7.0", ["duckduckgo-mcp-server"]],
  ["excel", "excel-mcp-server", "2.2.2", ["excel-mcp-server", "stdio"]],
  ["fetch", "mcp-server-fetch", "2026.10.24", ["mcp-server-fetch"]],
  ["git", "mcp-server-git", "2026.10.19", ["mcp-server-git"]],
  ["neo4j", "mcp-neo4j-cypher", "0.6.0", ["mcp-neo4j-cypher"], { NEO4J_URI: "bolt://127.0.0.1:9", NEO4J_USERNAME: "x", NEO4J_PASSWORD: "x" }],
  ["time", "mcp-server-time", "2026.10.19", ["mcp-server-time", "--local-timezone", "UTC"]],
];

const here = dirname(fileURLToPath(import.meta.url));
const directory = resolve(process.argv[2] ?? fail("usage: node collect.mjs DIRECTORY"));
const home = join(directory, "home");
mkdirSync(home, { recursive: true });

const tools = [];
const rows = [];
for (const [server, name, version, args, env] of NPM) {
  const root = join(directory, "npm", server);
  const modules = join(root, "node_modules");
  const description = join(modules, name, "package.json");
  if (!existsSync(description)) {
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, "package.json"), "{}");
    run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", `${name}@${version}`], root);
  }
  if (!existsSync(description)) continue;
  const { bin, license } = JSON.parse(readFileSync(description));
  const script = typeof bin === "string" ? bin : (bin[name.split("/").at(-1)] ?? Object.values(bin)[0]);
  const stated = license && !license.startsWith("SEE") ? license : (licenseFile(join(modules, name)) ?? license ?? "not stated");
  await collect({ server, registry: "npm", name, version, license: stated }, "node", [join(modules, name, script), ...args], env);
}
for (const [server, name, version, [command, ...args], env] of PYPI) {
  const root = join(directory, "pypi", server);
  const python = join(root, "bin/python");
  const program = join(root, "bin", command);
  if (!existsSync(program)) {
    run(process.env.PYTHON ?? "python3", ["-m", "venv", root], directory);
    run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", `${name}==${version}`], root);
  }
  if (!existsSync(program)) continue;
  const code = "import sys, importlib.metadata as m; d = m.metadata(sys.argv[1]); print(d.get('License-Expression') or next((c.split(' :: ')[-1] for c in d.get_all('Classifier') or [] if c.startswith('License')), None) or (d.get('License') or 'not stated').splitlines()[0])";
  const license = spawnSync(python, ["-c", code, name], { encoding: "utf8" }).stdout.trim();
  await collect({ server, registry: "PyPI", name, version, license }, program, args, env);
}

// Sorted, and one tool a line, so that a newer version's changes can be read.
tools.sort((a, b) => compare(a.server, b.server) || compare(a.name, b.name));
writeFileSync(join(here, "tools.json"), `[\n${tools.map((tool) => JSON.stringify(tool).replaceAll(home, "/home/user")).join(",\n")}\n]\n`);
rows.sort(compare);
console.log(["| server | package | version | license | tools |", "|---|---|---|---|---|", ...rows].join("\n"));
console.log(`\n${tools.length} tools of ${rows.length} servers`);
process.exit(0);

/** Lists one server's tools. */
async function collect(origin, program, args, env = {}) {
  try {
    const listed = await list(program, args, env);
    for (const { name, description, inputSchema, outputSchema } of listed) {
      const tool = { server: origin.server, name, description: cut(description), inputSchema: reduced(inputSchema) };
      if (outputSchema && JSON.stringify(outputSchema).length <= MAX_SCHEMA_CHARACTERS) tool.outputSchema = outputSchema;
      tools.push(tool);
    }
    rows.push(`| ${origin.server} | ${origin.name} (${origin.registry}) | ${origin.version} | ${origin.license} | ${listed.length} |`);
  } catch (error) {
    console.error(`${origin.server}: left out: ${error.message}`);
  }
}

function list(program, args, env) {
  return new Promise((fulfil, reject) => {
    const child = spawn(program, args, {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, DO_NOT_TRACK: "1", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let errors = "";
    const end = (settle, value) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      settle(value);
    };
    const timer = setTimeout(() => end(reject, new Error(`no answer in time: ${errors.slice(-300)}`)), DEADLINE_MS);
    const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const all = [];
    child.on("error", (error) => end(reject, error));
    child.on("exit", (code) => end(reject, new Error(`it ended with ${code}: ${errors.slice(-300)}`)));
    child.stdin.on("error", () => {});
    child.stderr.on("data", (chunk) => { errors += chunk; });
    createInterface({ input: child.stdout }).on("line", (line) => {
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        return;
      }
      // A request of the server gets an error, so that the server does not wait.
      if (message.method && message.id !== undefined) {
        send({ id: message.id, error: { code: -32601, message: "not supported" } });
      } else if (message.error && message.id !== undefined) {
        end(reject, new Error(message.error.message));
      } else if (message.id === 1) {
        send({ method: "notifications/initialized" });
        send({ id: 2, method: "tools/list", params: {} });
      } else if (message.id === 2) {
        all.push(...message.result.tools);
        const cursor = message.result.nextCursor;
        if (cursor) send({ id: 2, method: "tools/list", params: { cursor } });
        else end(fulfil, all);
      }
    });
    const clientInfo = { name: "collect", version: "1" };
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  });
}

function run(program, args, cwd) {
  const { status, stderr } = spawnSync(program, args, { cwd, encoding: "utf8", timeout: 240_000 });
  if (status !== 0) console.error(`${program} ${args.at(-1)}: ${stderr?.slice(-500)}`);
}

/** The first line of a package's license, for those whose description names none. */
function licenseFile(root) {
  const file = ["LICENSE", "LICENSE.md"].map((name) => join(root, name)).find(existsSync);
  return file ? readFileSync(file, "utf8").trim().split("\n")[0] : undefined;
}

function reduced(schema) {
  if (JSON.stringify(schema).length <= MAX_SCHEMA_CHARACTERS) return schema;
  const properties = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    return [name, { type: property.type, description: cut(property.description) }];
  });
  return { type: "object", properties: Object.fromEntries(properties), required: schema.required };
}

function cut(text) {
  return text && text.length > MAX_DESCRIPTION_CHARACTERS ? `${text.slice(0, MAX_DESCRIPTION_CHARACTERS)}…` : text;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
