import sys


def check(rows):
    if not rows:
        sys.exit("no rows")


check([])
