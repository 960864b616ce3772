match inputs:
    case {"n": int(n), "list": [first, *_]} if n > 5:
        return [n, first]
    case _:
        return "no match"
