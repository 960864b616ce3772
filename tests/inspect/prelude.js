// What the expressions use. `fixed` gives an error frames that are the same in every program.
const fix = (error, stack) => {
  Object.defineProperty(error, "stack", { value: stack, writable: true, configurable: true, enumerable: false });
  return error;
};
const fixed = (error) =>
  fix(error, error.stack.split("\n    at ")[0] + "\n    at work (file.ts:1:2)\n    at file.ts:3:4");
