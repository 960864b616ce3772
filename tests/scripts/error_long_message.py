raise ValueError("x" * 100_000)
