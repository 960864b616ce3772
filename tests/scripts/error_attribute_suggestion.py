import math

math.squrt(4)
