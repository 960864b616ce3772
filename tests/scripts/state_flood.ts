const writes = Array.from({ length: 10_000 }, (_, index) => state.set("k", index));
const results = await Promise.allSettled(writes);
return [results.filter((result) => result.status === "fulfilled").length, await state.get("k")];
