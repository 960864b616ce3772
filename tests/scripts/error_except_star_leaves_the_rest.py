try:
    raise ExceptionGroup("both", [TypeError("a type"), ValueError("a value")])
except* TypeError:
    print("handled")
