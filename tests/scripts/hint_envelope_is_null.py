answer = await mock.echo(items=[1])
return answer.get("structuredContent")
