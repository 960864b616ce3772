from math import inf
from sys import maxsize

return [maxsize == 2**31 - 1, min(inf, 10**12)]
