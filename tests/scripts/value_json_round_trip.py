import json

text = json.dumps({"a": [1, None, True, 1.5, "ä"]})
return [json.loads(text), json.loads('{"__proto__": {"a": 1}, "constructor": 2}'), text]
