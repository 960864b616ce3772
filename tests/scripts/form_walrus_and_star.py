if (n := inputs["n"]) > 5:
    first, *rest = [n, *inputs["list"]]
[first, rest]
