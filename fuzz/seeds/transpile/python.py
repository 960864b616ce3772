def f(x):
    return x
from a import b
