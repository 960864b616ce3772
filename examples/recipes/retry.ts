// Retries calls that were refused for now: errors that pass have `retryAfterMs`.
const zones: string[] = input?.zones ?? ["Asia/Tokyo", "Asia/Kolkata", "Africa/Cairo", "Europe/Oslo", "America/Lima"];
let retries = 0;

/** Calls `work` again while its error says when that is worth it. For calls without an effect only. */
async function patiently<Result>(work: () => Promise<Result>, attempts = 6): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof McpToolError) || error.retryAfterMs === undefined || attempt === attempts) {
        throw error;
      }
      retries += 1;
      // A little more each time, so that calls that were refused together do not all come back together.
      const pause = error.retryAfterMs + Math.random() * 100 * attempt;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

const times = await Promise.all(zones.map((timezone) => patiently(() => tools.time.get_current_time({ timezone }))));
return { zones: times.map(({ timezone }) => timezone), retried: retries > 0 };
