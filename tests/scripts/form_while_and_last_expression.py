a = []
i = 0
while i < 3:
    a.append(i)
    i += 1
a
