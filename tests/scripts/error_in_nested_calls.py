def outer(rows):
    return [inner(row) for row in rows]


def inner(row):
    return row["weight"] * 2


class Report:
    def total(self):
        return sum(outer([{"weight": 1}, {"height": 2}]))


print("before")
Report().total()
