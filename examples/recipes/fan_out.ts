// Counts the words of every Markdown file below a directory, four files at a time.
const { directory = ".", pattern = "**/*.md", atOnce = 4 } = input ?? {};

/** Calls `work` for each item, at most `limit` at the same time. The results are in the order of the items. */
async function mapLimited<Item, Result>(items: Item[], limit: number, work: (item: Item) => Promise<Result>) {
  const results: Result[] = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

const found = await tools.files.search_files({ path: directory, pattern });
const paths: string[] = found.content.split("\n").filter((path) => path.startsWith("/"));
const counts = await mapLimited(paths, atOnce, async (path) => {
  const { content } = await tools.files.read_text_file({ path });
  return { path, words: content.split(/\s+/).filter(Boolean).length };
});
counts.sort((a, b) => b.words - a.words);
return { files: counts.length, words: counts.reduce((sum, file) => sum + file.words, 0), longest: counts.slice(0, 3) };
