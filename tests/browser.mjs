// Drives a page in headless Chromium by the DevTools protocol, with Node's own WebSocket: no package is needed.
//
// `node browser.mjs ADDRESS STEPS`, where STEPS is JSON: a list of
//   {"wait": EXPRESSION}          until it is true, for 20 seconds at most
//   {"value": EXPRESSION}         its value is printed, as a line of JSON
//   {"key": "Tab" | "Enter"}      a key is pressed and released
//   {"tree": true}                what a screen reader is told of the page is printed: [[role, name, description], ...]
//   {"picture": FILE, "dark": BOOLEAN, "width": NUMBER, "height": NUMBER}
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [address, steps] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "cx-browser-"));
const browser = spawn(
  "chromium",
  ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"],
  { stdio: ["ignore", "ignore", "pipe"] },
);

const endpoint = await new Promise((resolve, reject) => {
  let text = "";
  browser.stderr.on("data", (piece) => {
    text += piece;
    const found = /DevTools listening on (ws:\S+)/.exec(text);
    if (found) resolve(found[1]);
  });
  browser.on("exit", () => reject(new Error(`chromium has ended: ${text}`)));
});

const socket = new WebSocket(endpoint);
await new Promise((resolve, reject) => {
  socket.onopen = resolve;
  socket.onerror = () => reject(new Error("no connection to chromium"));
});
let last = 0;
const open = new Map();
const failures = [];
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) open.get(message.id)?.(message);
  // What the page's policy has refused, and errors of its script.
  if (message.method === "Log.entryAdded" && message.params.entry.level === "error") {
    failures.push(message.params.entry.text);
  }
  if (message.method === "Runtime.exceptionThrown") failures.push(message.params.exceptionDetails.text);
};
let session;
function send(method, params = {}) {
  const id = ++last;
  socket.send(JSON.stringify({ id, method, params, sessionId: session }));
  return new Promise((resolve, reject) =>
    open.set(id, ({ result, error }) => (error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result))),
  );
}

const { targetId } = await send("Target.createTarget", { url: "about:blank" });
session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
for (const domain of ["Page", "Runtime", "Log"]) await send(`${domain}.enable`);
await send("Page.navigate", { url: address });

async function evaluate(expression) {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
  return result.value;
}

// Roles of text nodes, whose name is the text, and of containers that a screen reader skips.
const TEXTS = new Set(["StaticText", "InlineTextBox", "generic", "none", "LineBreak", "paragraph"]);

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

try {
  for (const step of JSON.parse(steps)) {
    if (step.wait) {
      const end = Date.now() + 60_000;
      while (!(await evaluate(step.wait).catch(() => false))) {
        if (Date.now() > end) throw new Error(`never: ${step.wait}: ${await evaluate("document.body.innerText")}`);
        await pause(50);
      }
    } else if (step.value) {
      console.log(JSON.stringify((await evaluate(step.value)) ?? null));
    } else if (step.tree) {
      const { nodes } = await send("Accessibility.getFullAXTree");
      const told = nodes.filter((node) => !node.ignored && !TEXTS.has(node.role?.value));
      console.log(JSON.stringify(told.map((node) => [node.role, node.name, node.description].map((field) => field?.value ?? ""))));
    } else if (step.key) {
      const text = step.key === "Enter" ? "\r" : undefined;
      const code = step.key === "Enter" ? 13 : 9;
      const key = { key: step.key, code: step.key, windowsVirtualKeyCode: code, text };
      await send("Input.dispatchKeyEvent", { type: "keyDown", ...key });
      await send("Input.dispatchKeyEvent", { type: "keyUp", ...key });
    } else if (step.picture) {
      const features = [{ name: "prefers-color-scheme", value: step.dark ? "dark" : "light" }];
      await send("Emulation.setEmulatedMedia", { features });
      const size = { width: step.width ?? 1200, height: step.height ?? 1000, deviceScaleFactor: 1, mobile: false };
      await send("Emulation.setDeviceMetricsOverride", size);
      await pause(300);
      const { data } = await send("Page.captureScreenshot", {});
      writeFileSync(step.picture, Buffer.from(data, "base64"));
    }
  }
  console.log(JSON.stringify({ failures }));
} finally {
  // It may close the connection before it answers, and then never does.
  await Promise.race([send("Browser.close").catch(() => {}), pause(2_000)]);
  browser.kill("SIGKILL");
  rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
process.exit(0);
