try {
  await mock.limited();
} catch (error) {
  return [error.code, error.retryAfterMs];
}
