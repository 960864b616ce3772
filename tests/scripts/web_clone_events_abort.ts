const clone = structuredClone({ map: new Map([[1, new Date(0)]]), bytes: new Uint8Array([1]) });
const buffer = new ArrayBuffer(8);
const moved = structuredClone(buffer, { transfer: [buffer] });
const target = new EventTarget();
const seen: unknown[] = [];
target.addEventListener("x", (event) => seen.push(event.type, (event as CustomEvent).detail));
target.dispatchEvent(new CustomEvent("x", { detail: 3 }));
const controller = new AbortController();
controller.signal.addEventListener("abort", () => seen.push("aborted"));
controller.abort();
let reason;
try {
  AbortSignal.timeout(1).throwIfAborted();
  controller.signal.throwIfAborted();
} catch (error) {
  reason = [error.name, error instanceof DOMException];
}
return [clone.map.get(1).getTime(), clone.bytes[0], buffer.byteLength, moved.byteLength, seen, reason];
