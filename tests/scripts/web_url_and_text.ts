const url = new URL("/a?b=1&b=2#c", "http://user@example.com:8080");
url.searchParams.append("d", "ä");
const bytes = new TextEncoder().encode("häß😀");
return [
  url.href,
  url.searchParams.getAll("b"),
  new TextDecoder().decode(bytes),
  bytes.length,
  new TextDecoder("utf-16le").decode(new Uint8Array([104, 0])),
  atob(btoa("hi")),
  URL.canParse("nope"),
  [URL, URLSearchParams, TextDecoder, URL.parse, TextDecoder.prototype.decode, atob]
    .map((made) => `${made.name}: ${`${made}`.split(/[({]/)[0].trim()}`),
];
