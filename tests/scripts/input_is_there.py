return [inputs, inputs["list"] == [1, 2], inputs["n"] * 2]
