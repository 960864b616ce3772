return inputs["n"]
