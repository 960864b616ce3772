import datetime as dt
import uuid
from enum import Enum


class Color(Enum):
    RED = "red"


return {
    1: "int",
    2.5: "float",
    True and "t": "text",
    None: "none",
    False: "bool",
    Color.RED: "enum",
    dt.date(2026, 1, 2): "date",
    uuid.UUID(int=1): "uuid",
}
