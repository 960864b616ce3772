console.log(tools, [tools.mock]);
return [Object.getOwnPropertySymbols(tools).length, Object.keys(tools), "inspect" in tools];
