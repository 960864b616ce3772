def check(number):
    if number % 2:
        raise ValueError(f"{number} is odd")


errors = []
for number in range(4):
    try:
        check(number)
    except ValueError as error:
        errors.append(error)
raise ExceptionGroup("bad numbers", [*errors, ExceptionGroup("inner", [KeyError("k")])])
