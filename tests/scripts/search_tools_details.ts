return [
  await search_tools("image", "names"),
  await search_tools("image", "descriptions"),
  await search_tools("image"),
  (await search_tools()).length,
];
