// What Node.js executes for each run of backend.rs. A message is a line of JSON.
"use strict";

const { createInterface } = require("node:readline");

const waiting = new Map();
let calls = 0;

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const callTool = (tool, args = {}) =>
  new Promise((resolve, reject) => {
    waiting.set(++calls, { resolve, reject });
    send({ call: calls, tool, arguments: args });
  });

async function execute(source) {
  const AsyncFunction = (async () => {}).constructor;
  try {
    const value = await new AsyncFunction("callTool", source)(callTool);
    send({ returned: value ?? null });
  } catch (error) {
    send({ failed: String(error?.message ?? error) });
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if ("source" in message) {
    execute(message.source);
    return;
  }
  const { resolve, reject } = waiting.get(message.call);
  waiting.delete(message.call);
  if ("error" in message) reject(new Error(message.error));
  else resolve(message.value);
});
