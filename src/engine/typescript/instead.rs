//! What scripts write instead of what other runtimes have: packages, and globals of browsers and of Node.

/// What to write instead of an import of anything but a server or the module of files.
pub(crate) fn of_import(specifier: &str) -> &'static str {
    if specifier.starts_with(['.', '/']) {
        return "a script is one file: write the function into it; a server is imported as `mcp:<server>`, a saved \
                script is called as `scripts.<name>(…)`";
    }
    let schemes = ["node:", "npm:", "jsr:"];
    let name = schemes.into_iter().find_map(|scheme| specifier.strip_prefix(scheme)).unwrap_or(specifier);
    if name.starts_with("@modelcontextprotocol/") {
        return "servers are connected already: `await tools.<server>.<tool>({…})`";
    }
    // Without a path in the package, and without a version.
    match name.split(['/', '@']).next().unwrap_or(name) {
        "fs" | "fs-extra" => "import `node:fs/promises`, whose functions are those of the global `fs`",
        "path" | "os" => "paths are text: write `/tmp/name` or `${directory}/name`",
        "http" | "https" | "net" | "axios" | "undici" | "got" | "ky" | "node-fetch" | "request" => {
            "`fetch` reaches the hosts that a person has granted; `searchTools(\"fetch\")` finds tools that fetch"
        }
        "child_process" => "call a tool that runs commands: `searchTools(\"run command\")` finds one",
        "crypto" => "`crypto.randomUUID` and `crypto.getRandomValues` are globals; Python has `hashlib`",
        "buffer" => BUFFER,
        "timers" => "`setTimeout` is a global: `await new Promise((done) => setTimeout(done, 100))`",
        "url" => "`URL` and `URLSearchParams` are globals",
        "process" => PROCESS,
        "util" => {
            "`console.log` formats values, `structuredClone` copies them; `TextEncoder` and `TextDecoder` are globals"
        }
        "events" => "`EventTarget` and `CustomEvent` are globals",
        "assert" => "write `if (!condition) throw new Error(\"…\")`",
        "perf_hooks" => "`performance` is a global",
        "stream" | "readline" => STREAMS,
        "zlib" => COMPRESSION,
        "worker_threads" | "cluster" => ONE_THREAD,
        "lodash" | "lodash-es" | "underscore" | "ramda" | "remeda" | "radash" => {
            "write it in JavaScript: `Object.groupBy`, `toSorted`, `flatMap`, `Set.prototype.union` and \
             `structuredClone` are there"
        }
        "dayjs" | "moment" | "moment-timezone" | "date-fns" | "date-fns-tz" | "luxon" => {
            "`Temporal`, `Intl.DateTimeFormat` and `Date` are globals"
        }
        "uuid" | "nanoid" => "`crypto.randomUUID()` makes an id",
        "p-limit" | "p-map" | "async" => {
            "`call_tools(calls, { max_parallel: 5 })` bounds the calls in flight; `Promise.all` makes all at once"
        }
        "papaparse" | "csv-parse" | "csv-parser" | "cheerio" | "jsdom" | "fast-xml-parser" | "xml2js"
        | "yaml" | "js-yaml" => {
            "read the text with `split` and regular expressions, or in Python, which has `csv`, `bs4`, `xmltodict` and \
             `yaml`"
        }
        "xlsx" | "exceljs" => {
            "Python has `zipfile` and `xml`, with which an .xlsx file is read; or call a tool"
        }
        _ => "import a server as `mcp:<server>`, or call `tools.<server>.<tool>(…)`",
    }
}

const BUFFER: &str = "use Uint8Array, TextEncoder and TextDecoder, atob and btoa";
const PROCESS: &str = "scripts have no process, environment or arguments; data comes in as `input`, `return` ends the \
                       script, `console.log` prints";
const STREAMS: &str =
    "write an async generator, `async function* parts() { yield … }`, and read it with `for await`";
const COMPRESSION: &str = "TypeScript has no compression here; Python has `gzip`, `zlib` and `zipfile`";
const ONE_THREAD: &str =
    "a script is one thread of plain JavaScript: `await Promise.all([…])` makes calls at once";

/// What to write instead of a global that other runtimes have.
pub(super) fn of_global(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" | "Request" | "Response" | "Headers" | "FormData" => {
            "this run has no network: a person allows hosts with `--allow-net HOST` or with `grants.net` in the \
             configuration; or call a tool that fetches: `searchTools(\"fetch\")` finds one"
        }
        "XMLHttpRequest" | "WebSocket" | "EventSource" => {
            "use `fetch`, which reaches hosts that a person has granted (`--allow-net HOST`), or call a tool that \
             fetches: `searchTools(\"fetch\")` finds one"
        }
        "module" | "exports" => "write `export default`, or `return` the value",
        "require" | "__dirname" | "__filename" => {
            "scripts have no packages; `fs` is a global, `tools.<server>.<tool>()` calls a tool, \
             `import … from \"mcp:<server>\"` imports one"
        }
        "process" | "Deno" | "Bun" => PROCESS,
        "global" | "self" => "write `globalThis`, or declare the variable",
        "Buffer" => BUFFER,
        "Blob" | "File" | "FileReader" => {
            "scripts have no blobs: use text and Uint8Array; `emit({ file: \"/tmp/name\" })` shows a file"
        }
        "ReadableStream" | "WritableStream" | "TransformStream" | "TextDecoderStream"
        | "TextEncoderStream" => STREAMS,
        "CompressionStream" | "DecompressionStream" => COMPRESSION,
        "DOMParser" => "use regular expressions, or Python, which has `bs4` and `xmltodict`",
        "URLPattern" => "use a regular expression with named groups on `new URL(text).pathname`",
        "path" | "os" | "child_process" => {
            "scripts have no processes; paths are text, `fs` has files of `/tmp`"
        }
        "callTool" | "useTool" | "useMcpTool" | "client" | "Client" | "mcpClient" | "MCPClient"
        | "McpClient" | "session" => "servers are connected already: `await tools.<server>.<tool>({…})`",
        "listTools" | "list_tools" | "getTools" | "findTools" => {
            "`await searchTools(\"words\")` finds tools, `help(\"<server>\")` lists those of a server"
        }
        "call_mcp_tool" => "in TypeScript it is `callMCPTool`",
        "discover_mcp_tools" => "in TypeScript it is `discoverMCPTools`",
        "get_tool_schema" => "in TypeScript it is `getToolSchema`",
        "sleep" | "delay" => "`await new Promise((done) => setTimeout(done, 100))` waits for 100 ms",
        "setImmediate" | "requestAnimationFrame" | "requestIdleCallback" => {
            "use setTimeout or queueMicrotask"
        }
        "WebAssembly" | "SharedArrayBuffer" | "Atomics" | "Worker" | "MessageChannel"
        | "BroadcastChannel" => ONE_THREAD,
        "localStorage" | "sessionStorage" | "indexedDB" => {
            "`await state.set(key, value)` keeps JSON between runs"
        }
        "window" | "document" | "navigator" | "location" => {
            "scripts do not run in a browser; or declare the variable"
        }
        "alert" | "confirm" | "prompt" => {
            "nobody can be asked here: return what the user should see, or print it; or declare the variable"
        }
        "print" => "use console.log",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
