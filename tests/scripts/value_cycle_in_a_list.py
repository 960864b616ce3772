a = [1]
a.append([a])
return a
