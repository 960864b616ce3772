for number in range(10):
    if number * number > 20:
        return number
