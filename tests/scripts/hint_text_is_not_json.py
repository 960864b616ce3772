import json
return json.loads(await mock.text(text="hello"))
