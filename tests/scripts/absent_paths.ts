async function attempt(action: () => Promise<unknown>) {
  try {
    return await action();
  } catch (error) {
    return [error.code, error.message];
  }
}

return {
  read: await attempt(() => fs.readFile("/etc/passwd", "utf8")),
  write: await attempt(() => fs.writeFile("/out.txt", "")),
  scratch: await attempt(() => fs.readFile("/tmp/notes.md")),
  relative: await attempt(() => fs.readFile("notes.md")),
  listdir: await attempt(() => fs.readdir("/home")),
  rename: await attempt(() => fs.rename("/tmp", "/tmp/x")),
  wrong: await attempt(() => fs.readFile(1 as unknown as string)),
  data: await attempt(() => fs.writeFile("/tmp/x", {} as unknown as string)),
};
