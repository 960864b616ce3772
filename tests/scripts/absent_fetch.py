response = await fetch("https://example.com/")
return response.status
