from enum import IntEnum


class Color(IntEnum):
    Red = 0
    Green = 5
    Blue = 6


return [Color.Red, Color.Blue, Color(5).name]
