return { rows: [{ id: 1 }, { id: 2n }] };
