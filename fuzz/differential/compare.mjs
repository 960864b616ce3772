// Compares what generated programs do, compiled by cx and by TypeScript itself. Reads the lines of
// `cargo run --release --example generate` from stdin; prints each difference, and ends with status 1 if there was one.
//
// Decorators: TypeScript writes the standard's for ES2022, as cx does. Enums are not inlined by cx (`isolatedModules`
// says the same to TypeScript). Fields are defined, not assigned, in both.
import { createInterface } from "node:readline";
import vm from "node:vm";
import ts from "typescript";

const options = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  useDefineForClassFields: true,
  isolatedModules: true,
};

/** What the program logs, with the error that ends it, if one does. */
async function outcome(code) {
  const context = vm.createContext({ result: undefined });
  try {
    const main = vm.runInContext(code, context, { timeout: 5000 });
    return JSON.stringify(await main());
  } catch (error) {
    return `${error?.name}: ${error?.message}`;
  }
}

let programs = 0;
let different = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { source, code, error } = JSON.parse(line);
  programs += 1;
  const theirs = ts.transpileModule(`${source}\n`, { compilerOptions: options }).outputText;
  const expected = await outcome(`(async () => {"use strict";\n${theirs}\nreturn out;\n})`);
  const found = error ?? (await outcome(code));
  if (found !== expected) {
    different += 1;
    if (different <= 5) {
      console.log(`--- source\n${source}--- cx: ${found}\n--- TypeScript: ${expected}\n`);
    }
  }
}
console.log(`${programs} programs, ${different} different`);
process.exitCode = different === 0 && programs > 0 ? 0 : 1;
