result = 3
result


class Z: ...
