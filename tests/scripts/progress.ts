// Reported progress is not part of the result, and wrong numbers are errors of the script.
const refused = [];
for (const report of [["1"], [-1], [NaN], [1, Infinity], [1, "2"], []]) {
  try {
    progress(...report);
  } catch (error) {
    refused.push(error.name);
  }
}
progress(1);
progress(2, 3);
progress(3, null, "done");
return [refused.length, typeof progress(3, 3, 7)];
