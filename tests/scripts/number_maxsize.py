import sys

smallest = min(sys.maxsize, 10**12)
return smallest
