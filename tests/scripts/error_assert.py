total = 3
assert total == 4, f"the total is {total}"
