const errors = [];
for (const topic of ["zebra", "mock.zebra", "mcp__zebra__a", 7, {}]) {
  try {
    help(topic);
  } catch (error) {
    errors.push({ name: error.name, code: error.code, message: error.message });
  }
}
return errors;
