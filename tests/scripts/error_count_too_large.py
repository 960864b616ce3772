return "a b".split(None, 2**40)
