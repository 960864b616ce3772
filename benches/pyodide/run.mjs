// Runs Python snippets in one Pyodide, as its users do, and prints the median of each in milliseconds as JSON.
// Arguments: how often, then the snippets.
import { loadPyodide } from "pyodide";

const [times, ...snippets] = process.argv.slice(2);
const started = performance.now();
const pyodide = await loadPyodide();
const loaded = performance.now() - started;
const medians = snippets.map((snippet) => {
  const taken = [];
  for (let count = 0; count < Number(times); count++) {
    const before = performance.now();
    pyodide.runPython(snippet);
    taken.push(performance.now() - before);
  }
  taken.sort((a, b) => a - b);
  return taken[Math.floor(taken.length / 2)];
});
console.log(JSON.stringify({ loaded, medians }));
