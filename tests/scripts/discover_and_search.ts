const all = await discoverMCPTools();
const some = await discoverMCPTools({ search: ["picture", "image"] });
const one = await discoverMCPTools({ server: "otherServer" });
const found = await searchTools("counts its calls", 2);
return {
  count: all.length,
  some: some.map((tool) => tool.name),
  one: one.map((tool) => [tool.name, tool.parameters]),
  found: found.map((tool) => tool.name),
  nearest: (await searchTools("zzzzzz")).map((tool) => tool.name),
  first: [all[0].name, all[0].description, all[0].annotations],
};
