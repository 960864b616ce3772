// Search and filter: which of the newest science books can be fetched today, without a reservation?
//
// The answers of the search come to some 85 KB. They stay in the script; a few lines leave it.
//
//   cx run --mcp-config examples/mcp.json examples/scripts/search.ts

interface Book {
  id: string;
  title: string;
  author: string;
  year: number;
  genre: string;
  language: string;
  pages: number;
  shelf: "loan" | "reference";
  /** How many copies each branch has, by the branch's id. */
  copies: Record<string, number>;
}

interface SearchResult {
  /** How many books match, on all pages. */
  total: number;
  books: Book[];
}

interface Branch {
  id: string;
  name: string;
  opens: string;
}

/** All books that match, page by page. */
async function searchAll(query: Record<string, unknown>): Promise<Book[]> {
  const books: Book[] = [];
  while (true) {
    const page: SearchResult = await tools.library.search_books({ ...query, offset: books.length });
    books.push(...page.books);
    if (page.books.length === 0 || books.length >= page.total) {
      return books;
    }
  }
}

const genres = ["science", "science fiction", "history"];
const found = (await Promise.all(genres.map((genre) => searchAll({ genre })))).flat();
console.log(`${found.length} books of ${genres.length} genres searched`);

// `list_branches` answers with JSON as text; a text that is a whole array or object arrives parsed.
const branches: Branch[] = await tools.library.list_branches();
const nameOf = new Map(branches.map((branch) => [branch.id, branch.name]));

const newest = found
  .filter((book) => book.genre === "science" && book.language === "English" && book.shelf === "loan")
  .sort((a, b) => b.year - a.year || a.title.localeCompare(b.title))
  .slice(0, 5);

return newest.map((book) => ({
  id: book.id,
  title: `${book.title}, ${book.author} (${book.year})`,
  at: Object.entries(book.copies)
    .filter(([, copies]) => copies > 0)
    .map(([branch]) => nameOf.get(branch)),
}));
