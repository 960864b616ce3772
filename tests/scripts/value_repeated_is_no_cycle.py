row = {"a": 1}
return [row, row]
