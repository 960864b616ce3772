value = 1
for _ in range(200):
    value = [value]
return value
