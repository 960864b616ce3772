class Name(str):
    pass


class Count(int):
    pass


class Row(dict):
    pass


return [Name("a"), Count(3), Row(a=1)]
