// The script of the README and its picture: a year of loans, added up.
//
//   cx run --mcp-config examples/mcp.json --stats examples/scripts/total.ts

const months = Array.from({ length: 12 }, (_, month) => `2025-${String(month + 1).padStart(2, "0")}`);
const years = await Promise.all(months.map((month) => tools.library.loans_for_month({ month })));
return years.flatMap((month) => month.loans).reduce((sum, loan) => sum + loan.count, 0);
