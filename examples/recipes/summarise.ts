// Summarizes every file of a directory with a language model. The files stay in the script; one line for each comes out.
const { directory, pattern = "*.md" } = input as { directory: string; pattern?: string };
const schema = {
  type: "object",
  properties: { summary: { type: "string" }, audience: { enum: ["users", "developers"] } },
  required: ["summary", "audience"],
};

const found = await tools.files.search_files({ path: directory, pattern });
const paths: string[] = found.content.split("\n").filter((path) => path.startsWith("/")).sort();
return Promise.all(paths.map(async (path) => {
  const { content } = await tools.files.read_text_file({ path });
  const question = `Summarize this page in one sentence, and say who it is for:\n\n${content.slice(0, 20_000)}`;
  const answer = await llm.ask(question, { schema, maxTokens: 100 });
  return { file: path.slice(path.lastIndexOf("/") + 1), ...answer };
}));
