// Writes a report after a person has seen it: with `--ask 'files.write_file'` the prompt shows path and content.
const { path, lines } = input as { path: string; lines: string[] };
const content = `# Report\n\n${lines.map((line) => `- ${line}\n`).join("")}`;
try {
  await tools.files.write_file({ path, content });
  return { written: path };
} catch (error) {
  if (!(error instanceof McpToolError) || error.code !== "TOOL_DENIED") {
    throw error;
  }
  // Asking again would show the same prompt again. The caller gets the draft, and the person's reason.
  return { written: null, reason: error.message, draft: content };
}
