// Reads what a server has besides tools: all resources of one type, and only a line of each.
const resources = await mcp.listResources("everything");
const documents = resources.filter(({ mimeType }) => mimeType === "text/markdown");
const lines = await Promise.all(documents.map(async ({ name, uri }) => {
  const { contents } = await mcp.readResource("everything", uri);
  return { name, begins: contents[0].text.split("\n")[0] };
}));
return { resources: resources.length, documents: lines };
