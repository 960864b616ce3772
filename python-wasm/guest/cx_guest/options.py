"""The options of a call, which are no arguments of its tool: the time for its answer."""

import math
from collections.abc import Mapping

# The names of the time for an answer -> milliseconds in one. The second is TypeScript's.
_TIMEOUTS = {"timeout": 1000.0, "timeoutMs": 1.0, "timeout_ms": 1.0}

# More seconds or milliseconds than any run has. An integer may be too large for a float.
_LONGEST = 1e12


def milliseconds(what: str, value, unit: float = 1000.0) -> float | None:
    """A time in milliseconds; None for one without end. Raises TypeError for what is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        kind = "seconds" if unit > 1 else "milliseconds"
        raise TypeError(f"{what} must be a number of {kind} above 0: {value!r}")
    return None if value == math.inf else float(min(value, _LONGEST)) * unit


def timeout_of(what: str, options: Mapping | None, own: tuple[str, ...] = ()) -> float | None:
    """The time for an answer, in milliseconds; None for none. `own` are options that the caller knows itself."""
    found = None
    for name, value in (options or {}).items():
        if name in own:
            continue
        unit = _TIMEOUTS.get(name) if isinstance(name, str) else None
        if unit is None:
            expected = " or ".join(f"`{known}`" for known in (*own[:1], "timeout"))
            more = "" if own else "; the tool's own arguments go into the first dict"
            raise TypeError(f"{what} has no option {name!r}: expected {expected}{more}")
        if value is not None:
            found = milliseconds(f"{what}: `{name}`", value, unit)
    return found


def timeout_among(what: str, options) -> float | None:
    """The same for options as the last positional argument, of which `options` are all that follow the others."""
    if len(options) > 1 or options and not isinstance(options[0], Mapping | None):
        raise TypeError(f"{what} takes at most one dict of options after the arguments, as in {{'timeout': 5}}")
    return timeout_of(what, options[0]) if options else None
