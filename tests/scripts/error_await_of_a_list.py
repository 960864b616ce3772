calls = []
return await calls
