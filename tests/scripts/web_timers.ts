const order: string[] = [];
setTimeout((a, b) => order.push(`timeout ${a}${b}`), 5, 1, 2);
const cancelled = setTimeout(() => order.push("cancelled"), 1);
clearTimeout(cancelled);
let ticks = 0;
const interval = setInterval(() => {
  ticks += 1;
  if (ticks === 3) clearInterval(interval);
}, 1);
queueMicrotask(() => order.push("microtask"));
for (const delay of [2 ** 31, NaN, -1, Infinity]) clearTimeout(setTimeout(() => {}, delay));
setInterval(() => {}, 1_000);
await new Promise((resolve) => setTimeout(resolve, 20));
return [order, ticks];
