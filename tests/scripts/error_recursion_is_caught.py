def depth(n):
    return depth(n + 1)


try:
    depth(0)
except RecursionError as error:
    return [type(error).__name__, "depth" in str(error)]
