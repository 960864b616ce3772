// The names of these codes in Python.
const names: Record<string, string> = {
  ENOENT: "FileNotFoundError",
  EACCES: "PermissionError",
  EISDIR: "IsADirectoryError",
  EEXIST: "FileExistsError",
  ENOTEMPTY: "OSError",
};
const found: Record<string, unknown> = {};
async function attempt(name: string, action: () => Promise<unknown>) {
  try {
    found[name] = await action();
  } catch (error) {
    found[name] = names[error.code] ?? error.message;
  }
}

await fs.mkdir("/tmp/reports/old", { recursive: true });
await fs.writeFile("/tmp/reports/a.csv", "id,name\n1,Ada\n");
await fs.appendFile("/tmp/reports/a.csv", "2,Grace\n");
await fs.writeFile("relative.bin", new Uint8Array([0, 255, 7]));
await fs.copyFile("/tmp/reports/a.csv", "/tmp/reports/old/b.csv");
await fs.rename("/tmp/reports/old/b.csv", "/tmp/reports/old/c.csv");
found.text = await fs.readFile("/tmp/reports/a.csv", "utf8");
found.bytes = [...(await fs.readFile("/tmp/relative.bin"))];
found.names = await fs.readdir("/tmp/reports");
found.root = await fs.readdir("/");
found.size = (await fs.stat("/tmp/reports/old/c.csv")).size;
found.kinds = [(await fs.stat("/tmp/reports/old")).isDirectory(), (await fs.stat("/tmp/reports/a.csv")).isFile()];
await attempt("missing", () => fs.readFile("/tmp/missing"));
await attempt("outside", () => fs.readFile("/etc/passwd"));
await attempt("above", () => fs.readFile("/tmp/../etc/passwd"));
await attempt("write outside", () => fs.writeFile("/etc/new", ""));
await attempt("directory", () => fs.writeFile("/tmp/reports", ""));
await attempt("exists", () => fs.mkdir("/tmp/reports"));
await attempt("not empty", () => fs.rmdir("/tmp/reports"));
await attempt("exclusive", () => fs.writeFile("/tmp/relative.bin", "", { flag: "wx" }));
await fs.rm("/tmp/reports", { recursive: true });
found.left = await fs.readdir("/tmp");
return found;
