// Fan out and aggregate: a year of loans, twelve calls at once, and the names of those at the top.
//
// The figures come to 870 KB. An agent that called the tools itself would read all of it.
//
//   cx run --mcp-config examples/mcp.json examples/scripts/fan_out.ts

interface Loan {
  book: string;
  branch: string;
  count: number;
}

interface Month {
  month: string;
  loans: Loan[];
}

interface Book {
  id: string;
  title: string;
  author: string;
  genre: string;
}

/** Adds up `count` by a key. */
function sums(loans: Loan[], key: (loan: Loan) => string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const loan of loans) {
    sums.set(key(loan), (sums.get(key(loan)) ?? 0) + loan.count);
  }
  return sums;
}

/** The entries with the largest numbers. Equal ones in the order of their names. */
function largest(sums: Map<string, number>, count: number): [string, number][] {
  return [...sums].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).slice(0, count);
}

const names = Array.from({ length: 12 }, (_, month) => `2025-${String(month + 1).padStart(2, "0")}`);

// The calls overlap: the script waits as long as for the slowest.
const months: Month[] = await Promise.all(names.map((month) => tools.library.loans_for_month({ month })));
const loans = months.flatMap((month) => month.loans);
console.log(`${loans.length} figures from ${months.length} months`);

const mostLent = await Promise.all(
  largest(sums(loans, (loan) => loan.book), 5).map(async ([id, count]) => {
    const book: Book = await tools.library.get_book({ id });
    return { title: book.title, author: book.author, genre: book.genre, loans: count };
  }),
);

return {
  total: loans.reduce((sum, loan) => sum + loan.count, 0),
  byBranch: Object.fromEntries(largest(sums(loans, (loan) => loan.branch), 10)),
  busiestMonth: months
    .map(({ month, loans }) => ({ month, loans: loans.reduce((sum, loan) => sum + loan.count, 0) }))
    .reduce((busiest, month) => (month.loans > busiest.loans ? month : busiest)),
  mostLent,
};
