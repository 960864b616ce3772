import math

factor: int = 2


def area(r):
    return factor * math.pi * r


class Circle:
    def area(self):
        return area(1) > 6


if not Circle().area():
    return "wrong"
del factor
return sorted(name for name in ("factor", "math", "Circle") if name in globals())
