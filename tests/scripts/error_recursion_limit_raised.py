import sys

sys.setrecursionlimit(10**9)


def depth(n):
    return depth(n + 1)


depth(0)
