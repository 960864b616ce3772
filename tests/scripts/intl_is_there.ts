return [
  new Intl.NumberFormat("de-DE").format(1234567.89),
  new Intl.DateTimeFormat("en-GB", { timeZone: "Asia/Tokyo", dateStyle: "long", timeStyle: "short" }).format(0),
  ["z", "ä", "a"].sort(new Intl.Collator("de").compare),
  "straße".localeCompare("strasse", "de", { sensitivity: "base" }),
];
