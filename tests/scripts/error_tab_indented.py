def f(x):
	if x:
		return x["a"]
f({"b": 1})
