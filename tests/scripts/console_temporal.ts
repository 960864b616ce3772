const date = Temporal.PlainDate.from("2024-02-28");
console.log(date, [Temporal.Duration.from({ hours: 1 })], Temporal.ZonedDateTime.from("2024-03-31T01:30[Europe/Berlin]"));
return date;
