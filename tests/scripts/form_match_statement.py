def kind(value):
    match value:
        case {"n": n}:
            return ["mapping", n]
        case [first, *_]:
            return ["sequence", first]
        case str() | bytes():
            return "text"


[kind(inputs), kind([1, 2]), kind("x"), kind(1)]
