const found = {};
async function attempt(name: string, call: () => Promise<unknown>) {
  try {
    found[name] = (await call()) ?? "kept";
  } catch (error) {
    found[name] = { code: error.code, message: error.message };
  }
}
const text = (bytes: number) => "x".repeat(bytes - 2);
await attempt("largest value", () => state.set("k", text(1 << 20)));
await attempt("larger value", () => state.set("k", text((1 << 20) + 1)));
await attempt("longest key", () => state.set("ö".repeat(256), 1));
await attempt("longer key", () => state.set("x".repeat(257), 1));
await attempt("no key", () => state.get(""));
await Promise.all(Array.from({ length: 998 }, (_, index) => state.set(`key ${index}`, index)));
await attempt("key 1,001", () => state.set("one more", 1));
await attempt("one that is there", () => state.set("key 1", "other"));
return { found, keys: (await state.keys()).length };
