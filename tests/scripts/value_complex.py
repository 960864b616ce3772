return {"z": 1 + 2j}
