// Reads a document that is too long for a model, part by part, and asks about all of it at the end.
//
//   cx run --llm examples/scripts/long_document.ts --input @question.json
//
// with {"document": "…", "question": "…"} in the file. The parts and the answers about them stay in the script: the
// caller gets the last answer. All calls are within one budget, so `llm.rounds` and `llm.tokens` must be large enough.

const { document, question } = input as { document: string; question: string };
const PART = 100_000;

const parts: string[] = [];
for (let start = 0; start < document.length; ) {
  // A part ends with a line, if one ends in its second half.
  const line = document.lastIndexOf("\n", start + PART);
  const end = line > start + PART / 2 ? line + 1 : start + PART;
  parts.push(document.slice(start, end));
  start = end;
}

const answers = await Promise.all(
  parts.map((part) =>
    llm.ask(`${question}\n\nAnswer from this part of a document only, or with "none":\n\n${part}`, { maxTokens: 200 })
  ),
);
const found = answers.filter((answer) => answer.trim().toLowerCase() !== "none");
const answer = found.length === 0
  ? "The document does not say."
  : await llm.ask(`${question}\n\nMake one answer of these. Answers:\n\n${found.join("\n---\n")}`);
return { answer, parts: parts.length, found: found.length };
