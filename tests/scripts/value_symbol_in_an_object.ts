return { rows: [Symbol("secret")] };
