answer = await mock.big(bytes=300_000)
return [len(answer), answer[:3]]
