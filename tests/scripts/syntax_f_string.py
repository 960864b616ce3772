name = "x"
f"{name"
