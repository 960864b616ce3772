type Row = dict[str, int]
row: Row = {"a": 1}
row
