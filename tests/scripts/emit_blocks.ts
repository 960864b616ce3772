emit("text");
emit({ a: [1] });
emit({ type: "image", mimeType: "image/png", data: new Uint8Array([1, 2, 3]) });
emit({ type: "image", mimeType: "image/png", data: "AQID" });
emit([{ type: "text", text: "one" }, { type: "text", text: "two" }]);
emit({ type: "resource", resource: { uri: "file:///x", text: "y" } });
const errors = [];
for (const wrong of [{ type: "image", data: "AQID" }, { type: "audio", mimeType: "audio/wav", data: 1 }]) {
  try {
    emit(wrong);
  } catch (error) {
    errors.push(error.message);
  }
}
return errors;
