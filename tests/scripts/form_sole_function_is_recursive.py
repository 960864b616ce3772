def count_down(given, n=3):
    return [n] + count_down(given, n - 1) if n else []
