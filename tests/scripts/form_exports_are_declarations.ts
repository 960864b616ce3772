export const a = 1; export function b() { return 2 }; a + b()
