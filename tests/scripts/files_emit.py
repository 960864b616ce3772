with open("/tmp/report.csv", "w") as file:
    file.write("a,b\n1,2\n")
emit({"file": "/tmp/report.csv"})
with open("/tmp/dot.png", "wb") as file:
    file.write(bytes([137, 80, 78, 71]))
emit({"file": "/tmp/dot.png"})
emit({"file": "dot.png", "mimeType": "application/x-own"})
errors = []
for wrong in [{"file": "/tmp/missing"}, {"file": "/tmp/dot.png", "mime": "image/png"}]:
    try:
        emit(wrong)
    except (McpToolError, TypeError) as error:
        errors.append(str(error))
return errors
