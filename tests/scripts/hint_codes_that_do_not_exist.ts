for (let attempt = 1; ; attempt++) {
  try {
    return await mock.limited();
  } catch (error) {
    if (error.code !== "RATE_LIMIT_EXCEEDED" || attempt > 3) throw error;
  }
}
