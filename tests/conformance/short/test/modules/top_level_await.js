/*---
description: the code of a module without imports and exports does the same in a script
flags: [module]
features: [top-level-await]
---*/

const seen = [await 1, await Promise.resolve(2)];
for await (const each of [Promise.resolve(3), 4]) seen.push(each);
if (await Promise.resolve(true)) {
  for (let index = await 0; index < (await 1); index++) seen.push(await (async () => 5)());
}
class Named { static [await Promise.resolve("field")] = 6; }
seen.push(Named.field);
try {
  await Promise.reject(new TypeError("expected"));
} catch ({ name }) {
  seen.push(name);
}
assert.same(seen, [1, 2, 3, 4, 5, 6, "TypeError"]);
