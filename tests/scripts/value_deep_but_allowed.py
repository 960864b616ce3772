value = 1
for _ in range(100):
    value = [value]
return len(str(value))
