Promise.prototype.toJSON = () => "spoofed";
Object.prototype.isPrototypeOf = () => true;
Function.prototype.toJSON = undefined;
return { list: [{ fn: () => 1 }] };
