prices = {"a": 1}
names = ["a", "b"]
sorted(names, key=lambda name: prices[name])
