"""One function."""

import math


def area(given):
    return round(math.pi * given["n"])
