return [
  await search_tools("image", "names"),
  await search_tools("image", "descriptions"),
  await search_tools("image", "full"),
  (await search_tools("image"))[0].inputSchema,
  (await getToolSchema("mcp__mock__image")).inputSchema,
  (await search_tools()).length,
];
