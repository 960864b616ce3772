filter = list(filter(None, [0, 1, 2]))
return filter
