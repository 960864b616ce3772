// What Node.js executes for each run of backend.rs. A message is a line of JSON.
"use strict";

const { createInterface } = require("node:readline");

// Requests without an answer, by number.
const waiting = new Map();
let requests = 0;

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const request = (message) =>
  new Promise((resolve, reject) => {
    waiting.set(++requests, { resolve, reject });
    send({ number: requests, ...message });
  });

const callTool = (tool, args = {}) => request({ tool, arguments: args });

// All that is not a call of a tool. cx checks it: this process may send whatever it likes.
const query = (query) => request({ query });

const searchTools = (words, limit = 10) => query({ kind: "search", query: words, limit, detail: "usage" });

const state = {
  get: async (key) => (await query({ kind: "state", call: { get: { key, tagged: false } } }))[0],
  set: (key, value) => query({ kind: "state", call: { set: { key, value: JSON.stringify(value) } } }),
};

async function file(call) {
  const answer = await query({ kind: "file", call });
  if (answer?.failed) throw Object.assign(new Error(answer.failed.message), { code: answer.failed.code });
  return answer;
}

const fs = {
  readFile: (path) => file({ op: "readFile", path, text: true }),
  writeFile: (path, data) => file({ op: "writeFile", path, data, base64: false, flag: "w" }),
};

// A response with all of its body, as text.
async function fetch(url, { method = "GET", headers = {}, body } = {}) {
  const id = ++requests;
  const open = { id, url, method, headers: Object.entries(headers), body: body && { text: body } };
  const response = await query({ kind: "fetch", call: { open } });
  const bytes = (part) => Buffer.from(part.text ?? part.base64, "text" in part ? "utf8" : "base64");
  const parts = [bytes(response.body)];
  for (let { done } = response; !done; ) {
    const next = await query({ kind: "fetch", call: { read: id } });
    parts.push(bytes(next.body));
    done = next.done;
  }
  const text = Buffer.concat(parts).toString();
  return { status: response.status, text: async () => text, json: async () => JSON.parse(text) };
}

async function execute(source) {
  const globals = { callTool, fetch, fs, searchTools, state };
  const AsyncFunction = (async () => {}).constructor;
  try {
    const value = await new AsyncFunction(...Object.keys(globals), source)(...Object.values(globals));
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
  const { resolve, reject } = waiting.get(message.number);
  waiting.delete(message.number);
  if ("error" in message) reject(new Error(message.error));
  else resolve(message.value);
});
