// Counts tokens (o200k): reads a JSON string a line, writes a number a line.
import { createInterface } from "node:readline";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

for await (const line of createInterface({ input: process.stdin })) {
  console.log(encode(JSON.parse(line), { allowedSpecial: new Set(), disallowedSpecial: new Set() }).length);
}
