answer = await tools.mock.text(text="hello")
return answer["content"][0]["text"]
