from typing import overload


@overload
def over(a: str) -> str: ...
@overload
def over(a: int) -> int: ...
def over(a):
    return a


over(1) + over(2)
