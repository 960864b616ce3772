return {"rows": [1, {"fn": lambda: 1}]}
