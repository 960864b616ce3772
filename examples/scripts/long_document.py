# Reads a document that is too long for a model, part by part, and asks about all of it at the end.
#
#   cx run --llm examples/scripts/long_document.py --input @question.json
#
# with {"document": "…", "question": "…"} in the file. The parts and the answers about them stay in the script: the
# caller gets the last answer. All calls are within one budget, so `llm.rounds` and `llm.tokens` must be large enough.

import asyncio

document, question = inputs["document"], inputs["question"]
PART = 100_000

parts = []
start = 0
while start < len(document):
    # A part ends with a line, if one ends in its second half.
    line = document.rfind("\n", start, start + PART)
    end = line + 1 if line > start + PART // 2 else start + PART
    parts.append(document[start:end])
    start = end


async def ask(part):
    prompt = f'{question}\n\nAnswer from this part of a document only, or with "none":\n\n{part}'
    return await llm.ask(prompt, max_tokens=200)


answers = await asyncio.gather(*(ask(part) for part in parts))
found = [answer for answer in answers if answer.strip().lower() != "none"]
if found:
    joined = "\n---\n".join(found)
    answer = await llm.ask(f"{question}\n\nMake one answer of these. Answers:\n\n{joined}")
else:
    answer = "The document does not say."
return {"answer": answer, "parts": len(parts), "found": len(found)}
