// Gives the result of a tool a type, and checks it once: what follows can rely on it.
interface Weather {
  temperature: number;
  conditions: string;
  humidity: number;
}

function isWeather(value: unknown): value is Weather {
  const fields = value as Record<keyof Weather, unknown>;
  return typeof fields?.temperature === "number" && typeof fields.conditions === "string"
    && typeof fields.humidity === "number";
}

const cities = ["New York", "Chicago", "Los Angeles"] as const;
const report = new Map<string, Weather>();
for (const location of cities) {
  const answer: unknown = await tools.everything.getStructuredContent({ location });
  if (!isWeather(answer)) {
    throw new TypeError(`${location}: not the weather: ${JSON.stringify(answer)}`);
  }
  report.set(location, answer);
}
const [warmest] = [...report].sort(([, a], [, b]) => b.temperature - a.temperature)[0];
return { warmest, ...report.get(warmest) };
