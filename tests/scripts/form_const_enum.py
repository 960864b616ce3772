from enum import IntFlag


class Flag(IntFlag):
    A = 1 << 0
    B = 1 << 3


return Flag.A | Flag.B
