rows = [{"id": 1}, {"id": 2}, {}]
ids = [
    row["id"]
    for row in rows
]
ids
