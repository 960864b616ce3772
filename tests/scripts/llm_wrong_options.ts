const messages = [];
for (const wrong of [
  () => llm.think([{ role: "user", content: "x" }]),
  () => llm.think(5),
  () => llm.ask("x", ["y"]),
  () => llm.ask("x", { temperature: 1 }),
]) {
  try {
    await wrong();
  } catch (error) {
    messages.push(error.message);
  }
}
return messages;
