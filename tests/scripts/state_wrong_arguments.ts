const errors = [];
for (const call of [() => state.get(7), () => state.set(null, 1), () => state.keys(1), () => state.update("k", 1)]) {
  try {
    await call();
  } catch (error) {
    errors.push(error.message);
  }
}
return errors;
