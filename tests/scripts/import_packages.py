import dateutil.parser
import yaml

return [dateutil.parser.parse("2 January 2026").isoformat(), yaml.safe_load("a: [1, x]"), yaml.safe_dump({"b": 1})]
