import json

text = '{"a": }'
data = json.loads(text)
data["a"]
