const uuid = crypto.randomUUID();
const bytes = crypto.getRandomValues(new Uint8Array(32));
const now = performance.now();
let quota;
try {
  crypto.getRandomValues(new Uint8Array(65_537));
} catch (error) {
  quota = error.name;
}
return [
  /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuid),
  uuid !== crypto.randomUUID(),
  bytes.some((byte) => byte !== 0),
  now >= 0 && now < 10_000,
  quota,
];
