// `Temporal` is V8's own, or a polyfill that is loaded at its first use.
const before = Object.getOwnPropertyDescriptor(globalThis, "Temporal")!.enumerable;
const date = Temporal.PlainDate.from("2024-02-28").add({ days: 2 });
const meeting = Temporal.ZonedDateTime.from("2026-03-29T01:30[Europe/Oslo]").add({ hours: 1 });
const { value, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(globalThis, "Temporal")!;
return {
  before,
  after: [typeof value, writable, enumerable, configurable],
  date: date.toString(),
  meeting: meeting.toString(),
  until: Temporal.PlainDate.from("2024-01-01").until(date, { largestUnit: "month" }).toString(),
  instant: new Date(0).toTemporalInstant().toString(),
  hebrew: date.withCalendar("hebrew").year,
  now: Temporal.Now.instant() instanceof Temporal.Instant,
  json: JSON.stringify({ date }),
  compare: ["2024-03-01", "2023-01-01"].sort(Temporal.PlainDate.compare),
};
