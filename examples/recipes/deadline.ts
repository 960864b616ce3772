// Ends in time with what it has: begins no further step when the time is up, and returns what is left for another run.
const { budgetMs, seconds } = input as { budgetMs: number; seconds: number[] };
const end = performance.now() + budgetMs;

const done: number[] = [];
const left = [...seconds];
while (left.length > 0 && performance.now() < end) {
  const [duration] = left;
  await tools.everything.triggerLongRunningOperation({ duration, steps: 1 });
  done.push(duration);
  left.shift();
}
return { done, left };
