return { rows: [1, { fn: () => 1 }] };
