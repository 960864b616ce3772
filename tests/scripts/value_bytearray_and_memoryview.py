refused = []
for value in (bytearray(b"x"), memoryview(b"x")):
    refused.append(call_tool("mock", "echo", {"data": value})["error"]["message"])
return refused
