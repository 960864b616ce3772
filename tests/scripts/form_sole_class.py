class Row:
    id: int
