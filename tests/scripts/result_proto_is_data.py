result = await mock.pollute()
return [list(result), not hasattr({}, "polluted"), type(result) is dict]
