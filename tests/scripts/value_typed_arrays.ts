const told = async (name: string, value: unknown) => {
  try {
    await tools.mock.echo({ value });
    return `${name}: taken`;
  } catch (error) {
    return `${name}: ${(error as Error).message}`;
  }
};
return {
  numbers: [new Float64Array([1, 2.5, NaN]), new Int32Array([-1]), new Float32Array(0)],
  told: [
    await told("buffer", new ArrayBuffer(4)),
    await told("view", new DataView(new ArrayBuffer(4))),
    await told("clamped", new Uint8ClampedArray(4)),
    await told("many", new Uint16Array(2 ** 20 + 1)),
    await told("as many as there can be", new Uint8Array(2 ** 24)),
    await told("exact", new BigInt64Array([2n ** 62n])),
  ],
  own: Object.assign(new Uint8Array(2), { toJSON: () => "its own" }),
};
