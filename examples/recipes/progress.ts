// Says how far a long script is: a bar in clients that show progress, a line on stderr in `cx run`.
const steps: number[] = input?.seconds ?? [2, 2, 2];
const answers: string[] = [];
for (const [index, duration] of steps.entries()) {
  progress(index, steps.length, `step ${index + 1}`);
  answers.push(await tools.everything.triggerLongRunningOperation({ duration, steps: 1 }));
}
progress(steps.length, steps.length, "done");
return answers.filter((answer) => answer.includes("completed")).length;
