try {
  await mock.unavailable();
} catch (cause) {
  throw new Error("the report could not be made", { cause });
}
