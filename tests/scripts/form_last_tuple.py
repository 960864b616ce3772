1, "two", None
