// Reports the files that were not there at the last run: `state` keeps what is known.
const directory: string = input.directory;
const { content } = await tools.files.list_directory({ path: directory });
const names = content.split("\n").filter((line) => line.startsWith("[FILE] ")).map((line) => line.slice(7)).sort();

const known = new Set(await state.get(`known:${directory}`, []));
await state.set(`known:${directory}`, names);
return { files: names.length, new: names.filter((name) => !known.has(name)) };
