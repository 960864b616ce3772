async function work(): Promise<void> {
  await mock.fail({ message: "no such file" });
}

await work();
