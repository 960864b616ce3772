return {"type": int}
