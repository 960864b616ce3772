answer = await tools.mock.echo(title="x")
return answer.title_of_it
