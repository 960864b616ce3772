// The call that is left is given up on purpose: no warning says so.
try {
  return await Promise.all([tools.mock.sleep({ ms: 60_000 }), tools.mock.fail({})]);
} catch {
  return "failed";
}
