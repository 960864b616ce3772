a = 1
b = 2
print(a)
c = a / (b - 2)
