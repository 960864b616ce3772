from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

try:
    ZoneInfo("Mars/Base")
except ZoneInfoNotFoundError as error:
    print(error)
ZoneInfo("America/NewYork")
