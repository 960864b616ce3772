inputs = 1


def main(given):
    return [inputs, given["n"]]
