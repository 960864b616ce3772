try:
    raise ValueError("first")
finally:
    {}["second"]
