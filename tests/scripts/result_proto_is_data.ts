const result = await mock.pollute();
return [Object.keys(result), ({}).polluted === undefined, Object.getPrototypeOf(result) === Object.prototype];
