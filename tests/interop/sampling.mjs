// A client on the official TypeScript SDK that offers its model: runs a script of each language that asks the model,
// and prints the answers as one line of JSON.
//
//   node sampling.mjs SDK NODE_MODULES COMMAND [ARGUMENT...]
import { connect } from "./connect.mjs";

const [sdk, modules, command, ...args] = process.argv.slice(2);

const SCRIPTS = {
  executeTypescript:
    "return await Promise.all([1, 2, 3, 4, 5].map((n) => llm.ask(`number ${n}`, { maxTokens: 9 })))",
  executePython:
    "import asyncio\nawait asyncio.gather(*(llm.ask(f'number {n}', max_tokens=9) for n in range(1, 6)))",
};

function sample({ params }) {
  const { content } = params.messages.at(-1);
  const [only] = [content].flat();
  const text = `re: ${only.text}, at most ${params.maxTokens}`;
  return { role: "assistant", content: { type: "text", text }, model: "mine" };
}

const { client, call, protocol } = await connect(sdk, modules, command, args, sample);
const seen = { protocol };
for (const [name, code] of Object.entries(SCRIPTS)) {
  const result = await call({ name, arguments: { code, enableSampling: true, timeoutMs: 60_000 } });
  const { value, error, samplingCalls = [] } = result.structuredContent;
  const models = [...new Set(samplingCalls.map((made) => JSON.stringify([made.provider, made.model])))];
  seen[name] = [value ?? error, models.map((text) => JSON.parse(text)), samplingCalls.length];
}
console.log(JSON.stringify(seen));
await client.close();
