lambda i: i["n"] + 1
