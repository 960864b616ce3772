// Handles failed calls by their code: what can be left out, what is worth another way, and what is a mistake.
const paths: string[] = input.paths;
const read: string[] = [];
const skipped: Record<string, string> = {};
for (const path of paths) {
  try {
    read.push((await tools.files.read_text_file({ path })).content);
  } catch (error) {
    if (!(error instanceof McpToolError)) {
      throw error; // A mistake of the script.
    }
    switch (error.code) {
      case "TOOL_ERROR": // The tool's own word: no such file, not allowed, …
        skipped[path] = error.message.split("\n")[0];
        break;
      case "RESULT_TOO_LARGE": // A part is better than nothing.
        read.push((await tools.files.read_text_file({ path, head: 100 })).content);
        skipped[path] = "only the first 100 lines";
        break;
      default: // INVALID_ARGUMENTS, TOOL_NOT_FOUND: the script is wrong. UPSTREAM_UNAVAILABLE: nothing will work.
        throw error;
    }
  }
}
return { read: read.length, letters: read.join("").length, skipped };
