import { writeFile, readFile as read } from "node:fs/promises";
import files from "fs";
await writeFile("/tmp/x", "imported");
const again = await import("fs/promises");
return [await read("/tmp/x", "utf8"), (await files.promises.readFile("/tmp/x")).toString(), again.default === fs];
