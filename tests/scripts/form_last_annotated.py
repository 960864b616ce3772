x: int = 5
