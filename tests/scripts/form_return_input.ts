return input.n
