inputs["n"] += 1
inputs["list"].append(3)
return inputs
