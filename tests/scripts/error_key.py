data = {"name": "x"}
data["nmae"]
