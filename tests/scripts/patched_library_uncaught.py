import json

json.dumps = json.loads = lambda *arguments, **named: "patched"
print(values := {"a": 1})
values["b"]
