rows = [
    {"id": 1},
    {"id": 2},
print(rows)
