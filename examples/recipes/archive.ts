// Moves the drafts of a directory into its folder `archive`. Look first: with `--dry-run` nothing moves, and the calls
// that would have been made are listed.
const directory: string = input.directory;
const found = await tools.files.search_files({ path: directory, pattern: "*.draft.md" });
const drafts: string[] = found.content.split("\n").filter((path) => path.endsWith(".draft.md"));

await tools.files.create_directory({ path: `${directory}/archive` });
for (const source of drafts) {
  const name = source.slice(source.lastIndexOf("/") + 1);
  await tools.files.move_file({ source, destination: `${directory}/archive/${name}` });
}
return { moved: drafts.length };
