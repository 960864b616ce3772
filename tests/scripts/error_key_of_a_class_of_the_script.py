class Key:
    def __hash__(self):
        return hash("rows")

    def __eq__(self, other):
        return False


table = {Key(): 0, "rows": {"a": 1}}
table["rows"]["b"]
