// Filters a long answer where it is: a log of any length goes into the script, ten counts come out.
const log = await tools.files.read_text_file({ path: input.path });
const lines: string[] = log.content.split("\n").filter(Boolean);
const errors = lines.filter((line) => line.includes(" ERROR ")).map((line) => line.split(" ERROR ")[1]);
const kinds: Record<string, number> = {};
for (const message of errors) {
  // Messages that differ in their numbers only are one kind.
  const kind = message.replace(/\d+/g, "N");
  kinds[kind] = (kinds[kind] ?? 0) + 1;
}
const most = Object.entries(kinds).sort((a, b) => b[1] - a[1]).slice(0, 10);
return { lines: lines.length, errors: errors.length, kinds: Object.fromEntries(most) };
