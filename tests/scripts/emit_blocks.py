emit("text")
emit({"a": [1]})
emit({"type": "image", "mimeType": "image/png", "data": bytes([1, 2, 3])})
emit({"type": "image", "mimeType": "image/png", "data": "AQID"})
emit([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
emit({"type": "resource", "resource": {"uri": "file:///x", "text": "y"}})
errors = []
for wrong in ({"type": "image", "data": "AQID"}, {"type": "audio", "mimeType": "audio/wav", "data": 1}):
    try:
        emit(wrong)
    except TypeError as error:
        errors.append(str(error))
return errors
