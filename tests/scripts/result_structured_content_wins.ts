return [
  await mock.structured({ value: { a: 1 } }),
  await mock.structured({ value: null }),
  await mock.structured({ value: [1] }),
];
