import json

help(json.dumps)
help("json.loads")
try:
    help("zebra.stripes")
except McpToolError as error:
    print(error)
help(7)
