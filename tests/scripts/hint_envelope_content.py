answer = await mock.echo(content="text")
return len(answer["content"][0]["text"])
