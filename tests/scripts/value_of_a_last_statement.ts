const found = inputs.list.length;
if (found > 5) {
  "many";
} else {
  try {
    found > 1 ? ["a", "few"] : JSON.parse("{");
  } catch (error) {
    "wrong";
  } finally {
    "not this";
  }
}
