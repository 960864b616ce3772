const numbers = Array.from({ length: 200 }, (_, index) => index);
const seen = await Promise.all(numbers.map((number) => state.update("sum", (sum) => sum + number, 0)));
const list = await state.update("list", async (list) => {
  list.push(await state.get("sum"));
  return list;
}, []);
await state.update("list", (list) => [...list, "more"]);
const first = await state.update("first", (nothing) => [nothing ?? null]);
return { last: seen[199], sum: await state.get("sum"), list, both: await state.get("list"), first };
