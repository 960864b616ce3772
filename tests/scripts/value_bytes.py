return {"files": [{"name": "a", "data": b"\x00\x01"}]}
