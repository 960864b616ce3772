first = ValueError("first")
second = ValueError("second")
first.__cause__ = second
second.__cause__ = first
raise first
