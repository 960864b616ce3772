// Tools that fail: caught as an exception, or taken as a value.
//
//   cx run --mcp-config examples/mcp.json examples/scripts/failing_tool.ts

interface Book {
  id: string;
  title: string;
  shelf: "loan" | "reference";
  copies: Record<string, number>;
}

interface Attempt {
  wish: string;
  outcome: string;
}

const attempts: Attempt[] = [];

// 1. An awaited call throws `McpToolError`. Its code says who has to act; its message is the tool's.
//    Anything else that is thrown is a mistake of the script and goes on its way.
async function reserve(id: string, branch: string): Promise<boolean> {
  const wish = `${id} at ${branch}`;
  try {
    attempts.push({ wish, outcome: await tools.library.reserve_book({ id, branch }) });
    return true;
  } catch (error) {
    if (!(error instanceof McpToolError)) {
      throw error;
    }
    attempts.push({ wish, outcome: `${error.code}: ${error.message}` });
    return false;
  }
}

const { books }: { books: Book[] } = await tools.library.search_books({ limit: 100 });
const reference = books.find((book) => book.shelf === "reference");
const missing = books.find((book) => book.shelf === "loan" && book.copies.north === 0);
if (!reference || !missing) {
  throw new Error("the catalogue has changed");
}

await reserve(reference.id, "north");
if (!(await reserve(missing.id, "north"))) {
  // The failure says why; the data says where else.
  const [branch] = Object.entries(missing.copies).find(([, copies]) => copies > 0) ?? [];
  await reserve(missing.id, branch ?? "central");
}
await reserve("B9999", "central");

// 2. `call_tool` waits for the answer and never throws for a tool's failure.
const answer = call_tool("library", "loans_for_month", { month: "1999-01" });
attempts.push({
  wish: "loans of 1999-01",
  outcome: answer.ok ? `${answer.result.loans.length} figures` : `${answer.error.code}: ${answer.error.message}`,
});

// 3. A wrong name fails before anything is called, and says which is the nearest right one.
const typo = call_tool("library", "serach_books", {});
attempts.push({ wish: "serach_books", outcome: typo.ok ? "?" : `${typo.error.code}: ${typo.error.message}` });

return attempts;
