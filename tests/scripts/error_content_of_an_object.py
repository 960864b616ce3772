answer = await tools.mock.echo(a=1)
return answer["content"][0]["text"]
