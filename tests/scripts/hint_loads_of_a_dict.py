import json
return json.loads(await mock.echo(a=1))
