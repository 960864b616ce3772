import attrs
import datetime
from collections import UserString


@attrs.define
class Point:
    x: int
    label: str = "a"


@attrs.frozen
class Line:
    ends: list[Point]


return {
    "attrs": Line([Point(1), Point(2, "b")]),
    "timezone": [datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=2))],
    "text": UserString("as it is"),
    "keys": {float("nan"): 1, float("inf"): 2, -float("inf"): 3},
}
