"""Annotations are text."""

from __future__ import annotations


def f(x: Undefined) -> AlsoUndefined:
    return x


return f.__annotations__
