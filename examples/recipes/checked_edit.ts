// Changes a file only if the change is the one that was meant: looks at the difference, writes, and reads it back.
const { path, from, to } = input as { path: string; from: string; to: string };
const edits = [{ oldText: from, newText: to }];

const preview = await tools.files.edit_file({ path, edits, dryRun: true });
const changed = preview.content.split("\n").filter((line) => /^[+-](?![+-])/.test(line));
if (changed.length !== 2) {
  return { written: false, reason: `${changed.length} lines would change, expected 2`, changed };
}
await tools.files.edit_file({ path, edits });
const { content } = await tools.files.read_text_file({ path });
return { written: content.includes(to) && !content.includes(from), changed };
