// Prints what Deno and Node print for each line of expressions.txt and calls.txt, as reference.json:
//
//     node tests/inspect/reference.mjs DENO > tests/inspect/reference.json
//
// DENO is Deno's executable, for instance that of the npm package @deno/linux-x64-glibc. Node is the one that runs this.
// Where the two differ in more than their quotation marks, the line's `node` is there, and reasons.json says why.

import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const deno = process.argv[2];
if (deno === undefined) {
  throw new Error("the first argument must be Deno's executable");
}
const lines = (name) =>
  readFileSync(join(here, name), "utf8").split("\n").filter((line) => line !== "" && !line.startsWith("#"));
const statements = [
  ...lines("expressions.txt").map((expression) => [expression, `console.log((${expression}))`]),
  ...lines("calls.txt").map((call) => [call, call]),
];

const END = "--- end of the line ---";
let script = readFileSync(join(here, "prelude.js"), "utf8");
for (const [, statement] of statements) {
  script += `try { ${statement}; } catch (error) { console.log("threw: " + error.message); }\n`;
  script += `console.log(${JSON.stringify(END)});\n`;
}
const directory = mkdtempSync(join(tmpdir(), "cx-inspect-"));
const file = join(directory, "script.cjs");
writeFileSync(file, script);

function outputs(program, args) {
  // Both streams in one file, so that they stay in order.
  const path = join(directory, "output");
  const output = openSync(path, "w");
  const result = spawnSync(program, [...args, file], {
    stdio: ["ignore", output, output],
    env: { ...process.env, NO_COLOR: "1" },
  });
  closeSync(output);
  const parts = readFileSync(path, "utf8").split(`${END}\n`);
  if (result.status !== 0 || parts.length !== statements.length + 1) {
    throw new Error(`${program} ended with ${result.status} after ${parts.length - 1} lines of ${statements.length}`);
  }
  return parts.map((part) => part.replace(/\n$/, ""));
}

const ofDeno = outputs(deno, ["run", "--quiet"]);
const ofNode = outputs(process.execPath, []);
const reasons = JSON.parse(readFileSync(join(here, "reasons.json"), "utf8"));
function reason(line) {
  for (const [text, all] of Object.entries(reasons)) {
    if (all.includes(line)) {
      return text;
    }
  }
  throw new Error(`Node prints something else than Deno, and reasons.json does not say why: ${line}`);
}
const withoutMarks = (text) => text.replace(/['"`]/g, '"');
const version = (program) => execFileSync(program, ["--version"], { encoding: "utf8" }).split("\n")[0].trim();
const values = statements.map(([line], index) => ({
  line,
  deno: ofDeno[index],
  ...(withoutMarks(ofNode[index]) === withoutMarks(ofDeno[index]) ? {} : { node: ofNode[index], reason: reason(line) }),
}));
console.log(JSON.stringify({ deno: version(deno), node: `node ${version(process.execPath)}`, values }, null, 1));
