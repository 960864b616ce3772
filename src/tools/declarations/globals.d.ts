
/** A tool as `getToolSchema` and the searches give it. What is printed or returned of a found tool is `usage`. */
interface CxToolSchema {
  name: string;
  server: string;
  description: string;
  parameters: { [keyword: string]: any };
  inputSchema: { [keyword: string]: any };
  outputSchema?: { [keyword: string]: any };
  inferredOutputSchema?: { [keyword: string]: any };
  annotations?: { [hint: string]: any };
  /** The tool's declaration. Of tools from `getToolSchema` only. */
  typescript?: string;
  usage?: string;
}

type CxCallResult = { ok: true; result: any } | { ok: false; error: { code: string; message: string } };

/** A tool call that failed. */
declare class McpToolError extends Error {
  constructor(message?: string, fields?: { server?: string; tool?: string; code?: string; content?: any[] });
  server: string | undefined;
  tool: string | undefined;
  code: string;
  content: any[];
  retryAfterMs?: number;
}

/** The JSON that was given with the run, else null. */
declare const input: any;
declare const inputs: any;

/** Adds text, an image, a file (`{ file: "/tmp/a.csv" }`) or another content block to what the user sees. */
declare function emit(value: unknown): void;

/**
 * The second argument of every tool: what ends its call, also at the server, and how long it may take. A number, the
 * index that `map` passes, is ignored.
 */
type CxCallOptions = { signal?: AbortSignal; timeoutMs?: number };

/** The tools of a server by their full names, as searches give them: `tools.mcp__server__tool`. */
type CxFullNames<Server extends string, Tools> = {
  readonly [Tool in keyof Tools & string as `mcp__${Server}__${Tool}`]: Tools[Tool];
};

/** Calls a tool by its full name, or as `server.tool`. */
declare function callMCPTool(name: string, args?: { [key: string]: unknown }, options?: CxCallOptions): Promise<any>;
declare function call_tool(server: string, tool: string, args?: { [key: string]: unknown }): CxCallResult;
declare function call_tools(
  calls: { server: string; tool: string; args?: { [key: string]: unknown } }[],
  options?: { max_parallel?: number },
): CxCallResult[];
declare function discoverMCPTools(
  options?: string | string[] | { search?: string | string[]; server?: string },
): Promise<CxToolSchema[]>;
declare function searchTools(query: string, limit?: number): Promise<CxToolSchema[]>;
declare function search_tools(query?: string, detail?: string): Promise<any[]>;
declare function getToolSchema(name: string): Promise<CxToolSchema | null>;
/** The guide, a section of it, a server or a tool. */
declare function help(topic?: unknown): Promise<string>;

/** JSON that stays between runs. */
declare const state: {
  get(key: string, fallback?: unknown): Promise<any>;
  set(key: string, value: unknown): Promise<void>;
  update(key: string, change: (value: any) => unknown, fallback?: unknown): Promise<any>;
  delete(key: string): Promise<boolean>;
  keys(prefix?: string): Promise<string[]>;
};

/** Files of `/tmp`, which ends with the run, and of granted directories. Named as in Node's `fs/promises`. */
declare const fs: CxFiles;
type CxBytes = Uint8Array | ArrayBuffer | DataView;
type CxFileKind = { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean };
type CxFileStats = CxFileKind & { size: number; ino: number; mtimeMs: number; mtime: Date };
type CxFiles = {
  readFile(path: string | URL, options: "utf8" | "utf-8" | { encoding: "utf8" | "utf-8" }): Promise<string>;
  readFile(path: string | URL, options?: { encoding?: null } | null): Promise<Uint8Array>;
  writeFile(path: string | URL, data: string | CxBytes, options?: string | { flag?: string }): Promise<void>;
  appendFile(path: string | URL, data: string | CxBytes, options?: string | { flag?: string }): Promise<void>;
  readdir(path: string | URL, options: { withFileTypes: true; recursive?: boolean }): Promise<(CxFileKind & { name: string; parentPath: string })[]>;
  readdir(path: string | URL, options?: { recursive?: boolean }): Promise<string[]>;
  mkdir(path: string | URL, options?: { recursive?: boolean }): Promise<string | undefined>;
  mkdtemp(prefix: string): Promise<string>;
  rm(path: string | URL, options?: { recursive?: boolean; force?: boolean }): Promise<void>;
  unlink(path: string | URL): Promise<void>;
  rmdir(path: string | URL): Promise<void>;
  stat(path: string | URL): Promise<CxFileStats>;
  lstat(path: string | URL): Promise<CxFileStats>;
  rename(from: string | URL, to: string | URL): Promise<void>;
  copyFile(from: string | URL, to: string | URL, mode?: number): Promise<void>;
  access(path: string | URL, mode?: number): Promise<void>;
  truncate(path: string | URL, size?: number): Promise<void>;
  constants: { F_OK: 0; X_OK: 1; W_OK: 2; R_OK: 4; COPYFILE_EXCL: 1 };
  promises: CxFiles;
};

/** What servers have besides tools, and earlier runs. */
declare const mcp: {
  servers(): Promise<string[]>;
  listResources(server: string): Promise<any[]>;
  readResource(server: string, uri: string): Promise<any>;
  listPrompts(server: string): Promise<any[]>;
  getPrompt(server: string, name: string, args?: { [key: string]: unknown }): Promise<any>;
  run(runId: string): Promise<any>;
};

/** Reports how far the script is. It never goes back. */
declare function progress(done: number, total?: number, message?: string): void;

type CxModelOptions = {
  schema?: { [keyword: string]: any };
  model?: string;
  maxTokens?: number;
  systemPrompt?: string;
};
type CxMessages = { messages: { role: "user" | "assistant" | "system"; content: string }[] };

/** A language model, where scripts may ask one. With a schema the answer is a value that fits, else a text. */
declare const llm: {
  ask(prompt: string, options?: CxModelOptions & { stream?: false }): Promise<any>;
  ask(prompt: string, options: CxModelOptions & { stream: true }): AsyncGenerator<string>;
  think(request: CxMessages & CxModelOptions & { stream?: false }): Promise<any>;
  think(request: CxMessages & CxModelOptions & { stream: true }): AsyncGenerator<string>;
  extract(value: unknown, schema: { [keyword: string]: any }, options?: CxModelOptions): Promise<any>;
};
