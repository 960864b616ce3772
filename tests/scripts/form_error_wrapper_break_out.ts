})(); globalThis.early = 1; (async () => {
