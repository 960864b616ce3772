total = 3
assert total == 4
