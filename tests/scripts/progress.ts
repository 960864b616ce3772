// What a script reports is no part of its result, and wrong numbers are its mistakes.
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
