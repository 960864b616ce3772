print(input["n"])
