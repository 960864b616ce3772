answer = await mock.echo(items=[{"id": 1, "title": "secret words"}], next=None)
items = answer["structuredContent"]["items"]
return len(items)
