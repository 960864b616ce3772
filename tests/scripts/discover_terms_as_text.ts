return {
  text: (await discoverMCPTools("image")).map((tool) => tool.name),
  list: (await discoverMCPTools(["picture", "image"])).map((tool) => tool.name),
};
