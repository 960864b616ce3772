function assert(value, message) {
  if (value !== true) throw new Test262Error(message ?? `${value} is not true`);
}
assert.same = (found, wanted, message = "") => {
  const [one, other] = [found, wanted].map((value) => typeof value === "object" ? JSON.stringify(value) : value);
  if (!Object.is(one, other)) throw new Test262Error(`${message} ${String(one)} is not ${String(other)}`);
};
assert.throws = (type, run, message = "") => {
  try {
    run();
  } catch (error) {
    if (error instanceof type) return;
    throw new Test262Error(`${message} threw ${error}, not a ${type.name}`);
  }
  throw new Test262Error(`${message} did not throw`);
};
