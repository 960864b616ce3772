def anything(i):
    return i["n"]
