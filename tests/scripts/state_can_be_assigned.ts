globalThis.state = 1;
globalThis.help = 2;
return [state, help];
