"""The local time zone of a run that is not in UTC, for `time` and `datetime`.

The C library of the component knows UTC only, and CPython asks it. So what asks it is replaced here, by functions that
ask `zoneinfo`, in runs that need it: the others pay nothing. `datetime`'s classes are written in C and refuse new
attributes, so the functions are put into the dictionaries behind them: a subclass in their place would not be the class
of what C code makes.
"""

import datetime
import gc
import logging
import math
import os
import sys
import time
import types
import zoneinfo

_UTC = datetime.timezone.utc
# Years that have a day before and a day after in `datetime`. Outside them the offset of the nearest one applies.
_MIN_YEAR, _MAX_YEAR = 2, 9998

# The functions of `time` that depend on the time zone, and where else they are known by name.
_FUNCTIONS = ("asctime", "ctime", "localtime", "mktime", "strftime")
_holders: list[tuple[dict, str, str]] = []

_gmtime = time.gmtime
_asctime = time.asctime
_mktime = time.mktime
_strftime = time.strftime
_now = datetime.datetime.__dict__["now"]
_fromtimestamp = datetime.datetime.__dict__["fromtimestamp"]
_astimezone = datetime.datetime.astimezone
_timestamp = datetime.datetime.timestamp


def install() -> None:
    """Finds the modules that have imported functions of `time` by name. Build time only, after the preload."""
    names = {id(getattr(time, name)): name for name in _FUNCTIONS}
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or module.__name__ == __name__:
            continue
        for name, value in list(vars(module).items()):
            function = names.get(id(value))
            if function is not None:
                _holders.append((vars(module), name, function))


def start(name: str) -> None:
    """Makes this time zone the local one. Called before any code of the script runs."""
    zone = zoneinfo.ZoneInfo(name)
    functions = _time_functions(zone)
    for holder, attribute, function in _holders:
        holder[attribute] = functions[function]
    logging.Formatter.converter = staticmethod(functions["localtime"])
    _replace_methods(zone)
    # As a program finds it on a machine whose time zone was set so.
    os.environ["TZ"] = name


def _at(seconds: int, tzinfo: datetime.tzinfo) -> datetime.datetime:
    """The date and time that UTC has at this time, in this time zone."""
    utc = _gmtime(seconds)
    year = min(max(utc.tm_year, _MIN_YEAR), _MAX_YEAR)
    day = utc.tm_mday if year == utc.tm_year else min(utc.tm_mday, 28)
    return datetime.datetime(year, utc.tm_mon, day, utc.tm_hour, utc.tm_min, utc.tm_sec, tzinfo=tzinfo)


def _described(local: datetime.datetime) -> tuple[int, bool, str]:
    """Seconds east of UTC at this time, whether that is daylight saving time, and its abbreviation."""
    return math.floor(local.utcoffset().total_seconds()), bool(local.dst()), local.tzname()


def _time_functions(zone: zoneinfo.ZoneInfo) -> dict:
    """Sets the constants of `time`, and returns its functions for this time zone."""
    year = _gmtime().tm_year
    # As CPython finds them: those of the first of January and of July.
    january, july = (_described(datetime.datetime(year, month, 1, tzinfo=zone)) for month in (1, 7))
    standard, daylight = (january, july) if january[0] <= july[0] else (july, january)
    time.timezone, time.altzone = -standard[0], -daylight[0]
    time.tzname = (standard[2], daylight[2])
    time.daylight = int(standard[0] != daylight[0])

    def localtime(seconds=None, /):
        if seconds is None:
            seconds = time.time()
        # Refuses what is no time.
        _gmtime(seconds)
        seconds = math.floor(seconds)
        offset, is_daylight, name = _described(_astimezone(_at(seconds, _UTC), zone))
        fields = _gmtime(seconds + offset)[:8]
        return time.struct_time((*fields, int(is_daylight), name, offset))

    def mktime(fields, /):
        # In UTC, which also refuses what is no time, and knows that the 32nd of May is the first of June.
        wall = math.floor(_mktime((*fields[:8], 0) if len(fields) == 9 else fields))
        local = _at(wall, zone)
        offset, is_daylight, _ = _described(local)
        wanted = fields[8]
        if wanted >= 0 and is_daylight != bool(wanted):
            later, later_is_daylight, _ = _described(local.replace(fold=1))
            if later_is_daylight == bool(wanted):
                offset = later
            elif time.daylight:
                # The other time of the year is meant, as if it were now.
                offset = -time.altzone if wanted else -time.timezone
        return float(wall - offset)

    def strftime(format, fields=None, /):
        if fields is None:
            fields = localtime()
        elif getattr(fields, "tm_zone", None) is None and len(fields) >= 9:
            is_daylight = int(fields[8]) > 0
            offset = -time.altzone if is_daylight else -time.timezone
            fields = time.struct_time((*tuple(fields)[:9], time.tzname[is_daylight], offset))
        return _strftime(format, fields)

    def asctime(fields=None, /):
        return _asctime(localtime() if fields is None else fields)

    def ctime(seconds=None, /):
        return _asctime(localtime(seconds))

    functions = {"asctime": asctime, "ctime": ctime, "localtime": localtime, "mktime": mktime, "strftime": strftime}
    for name, function in functions.items():
        original = getattr(time, name)
        function.__module__, function.__qualname__, function.__doc__ = "time", name, original.__doc__
    return functions


def _naive(cls: type, local: datetime.datetime) -> datetime.datetime:
    """The wall clock of `local`, as `cls`."""
    if cls is datetime.datetime:
        return local.replace(tzinfo=None)
    value = cls(local.year, local.month, local.day, local.hour, local.minute, local.second, local.microsecond)
    return value.replace(fold=1) if local.fold else value


def _replace_methods(zone: zoneinfo.ZoneInfo) -> None:
    """Replaces the methods of `date` and `datetime` that ask for the local time."""
    base = datetime.datetime

    def now(cls, tz=None):
        return _naive(cls, base_now(zone)) if tz is None else _now.__get__(None, cls)(tz)

    def fromtimestamp(cls, timestamp, tz=None):
        if tz is None:
            return _naive(cls, base_fromtimestamp(timestamp, zone))
        return _fromtimestamp.__get__(None, cls)(timestamp, tz)

    def date_fromtimestamp(cls, timestamp, /):
        local = base_fromtimestamp(timestamp, zone)
        return cls(local.year, local.month, local.day)

    def today(cls):
        return cls.fromtimestamp(time.time())

    def astimezone(self, tz=None):
        if self.utcoffset() is None:
            self = self.replace(tzinfo=zone)
        if tz is None:
            local = _astimezone(self, zone)
            tz = datetime.timezone(local.utcoffset(), local.tzname())
        return _astimezone(self, tz)

    def timestamp(self):
        return _timestamp(self.replace(tzinfo=zone) if self.tzinfo is None else self)

    base_now, base_fromtimestamp = _now.__get__(None, base), _fromtimestamp.__get__(None, base)
    _put(base, {"now": classmethod(now), "fromtimestamp": classmethod(fromtimestamp)})
    _put(base, {"astimezone": astimezone, "timestamp": timestamp})
    _put(datetime.date, {"fromtimestamp": classmethod(date_fromtimestamp), "today": classmethod(today)})
    # The interpreter remembers where it has found the old ones.
    sys._clear_internal_caches()


def _put(cls: type, methods: dict) -> None:
    (attributes,) = gc.get_referents(cls.__dict__)
    for name, method in methods.items():
        function = getattr(method, "__func__", method)
        function.__module__, function.__name__ = "datetime", name
        function.__qualname__, function.__doc__ = f"{cls.__name__}.{name}", attributes[name].__doc__
        attributes[name] = method
