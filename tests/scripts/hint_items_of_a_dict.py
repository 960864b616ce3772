answer = await mock.echo(items=[{"name": "Ada"}])
for item in answer.items:
    print(item)
