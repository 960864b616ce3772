x = 1
lambda: x
