// What has no stack is printed with its properties, and a prototype with what describes them.
const bare = new DOMException("stopped", "AbortError");
delete bare.stack;
console.log(bare, [bare]);
console.log(DOMException.prototype);
return bare.code;
