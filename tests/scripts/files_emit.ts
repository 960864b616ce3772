await fs.writeFile("/tmp/report.csv", "a,b\n1,2\n");
emit({ file: "/tmp/report.csv" });
await fs.writeFile("/tmp/dot.png", new Uint8Array([137, 80, 78, 71]));
emit({ file: "/tmp/dot.png" });
emit({ file: "dot.png", mimeType: "application/x-own" });
const errors = [];
for (const wrong of [{ file: "/tmp/missing" }, { file: "/tmp/dot.png", mime: "image/png" }]) {
  try {
    emit(wrong);
  } catch (error) {
    errors.push(error.message);
  }
}
return errors;
