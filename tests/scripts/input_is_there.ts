return [input, inputs === input, input.n * 2];
