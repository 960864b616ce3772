answer = await mock.echo(user={"name": "Ada"})
return answer["user"].name
