def main(data=None, *, verbose=False):
    return [data["n"], verbose]
