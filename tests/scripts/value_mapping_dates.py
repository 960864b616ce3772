import datetime as dt
from zoneinfo import ZoneInfo

moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678900)
return {
    "naive": moment,
    "utc": moment.replace(tzinfo=dt.UTC),
    "berlin": moment.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    "date": moment.date(),
    "time": moment.time(),
    "duration": dt.timedelta(hours=1, milliseconds=500),
}
