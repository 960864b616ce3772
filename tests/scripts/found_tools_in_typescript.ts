const [found] = await searchTools("image", 1);
console.log(found);
return { found, keys: Object.keys(found), name: found.name, parameters: found.parameters, spread: { ...found } };
