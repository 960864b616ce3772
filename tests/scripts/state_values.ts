const value = { b: [1, 2.5, null], a: "ö", nested: { "__proto__": 1, deep: true } };
const before = [await state.get("k"), await state.get("k", 7), await state.delete("k"), await state.keys()];
await state.set("k", value);
await state.set("__proto__", { polluted: 1 });
await state.set("null", null);
const after = [await state.get("k"), await state.get("__proto__"), await state.get("null", 7), await state.keys("n")];
const gone = [await state.delete("k"), await state.get("k", "gone"), await state.keys()];
return { before: before.map((value) => value ?? null), after, gone, polluted: {}.polluted ?? null };
