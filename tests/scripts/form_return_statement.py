x: int = 1; return x + 1
