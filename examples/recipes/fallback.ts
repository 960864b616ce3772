// Takes the first source that has an answer: the graph of `memory`, else a file, else a default.
const key: string = input.key;
const sources = {
  memory: async () => {
    const { entities } = await tools.memory.open_nodes({ names: [key] });
    return entities[0]?.observations[0];
  },
  file: async () => JSON.parse((await tools.files.read_text_file({ path: input.file })).content)[key],
  default: async () => "unknown",
};

const failed: Record<string, string> = {};
for (const [source, read] of Object.entries(sources)) {
  try {
    const answer = await read();
    if (answer !== undefined) {
      return { answer, source, failed };
    }
  } catch (error) {
    failed[source] = error.code ?? error.name;
  }
}
