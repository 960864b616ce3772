async function main() { return await sub() }
async function sub() { return 8 }
