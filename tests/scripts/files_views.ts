// A view has the bytes that V8 says, whatever its properties are.
const bytes = new Uint8Array([0, 104, 105]).subarray(1);
Object.defineProperty(bytes, "buffer", { value: { length: 3 } });
Object.defineProperty(bytes, "byteLength", { value: 9 });
await fs.writeFile("a", bytes);
await fs.appendFile("a", new DataView(new Uint8Array([33]).buffer));
Object.setPrototypeOf(bytes, null);
await fs.appendFile("a", bytes);
return await fs.readFile("a", "utf8");
