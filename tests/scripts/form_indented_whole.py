    total = 0
    for n in inputs["list"]:
        total += n
    return total
