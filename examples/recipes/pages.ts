// Pages through a long document: `fetch` gives it in parts, and says where the next one begins.
const { url, word } = input;

async function* parts(url: string) {
  for (let start = 0; ; ) {
    const text: string = await tools.fetch.fetch({ url, start_index: start, max_length: 5_000, raw: true });
    const more = /<error>Content truncated\. .* start_index of (\d+) /.exec(text);
    // The first line that is the document's own comes after the server's heading.
    const body = text.slice(text.indexOf(`Contents of ${url}:\n`) + `Contents of ${url}:\n`.length);
    yield more === null ? body : body.slice(0, body.lastIndexOf("\n\n<error>"));
    if (more === null) {
      return;
    }
    start = Number(more[1]);
  }
}

let count = 0;
let document = "";
for await (const part of parts(url)) {
  count += 1;
  document += part;
}
// A word may begin in one part and end in the next: so the parts are joined before they are searched.
return { parts: count, letters: document.length, found: document.split(word).length - 1 };
