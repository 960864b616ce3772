try:
    {}["missing"]
except KeyError:
    raise ValueError("no such row") from None
