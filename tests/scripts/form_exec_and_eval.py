namespace = {}
exec("def twice(x):\n    return 2 * x", namespace)
return [namespace["twice"](2), eval("1 + 1"), eval(compile("3", "x", "eval"))]
