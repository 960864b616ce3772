run = lambda i: {"got": i["n"]}
