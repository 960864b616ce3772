def read():
    raise OSError("disk")


def parse():
    try:
        read()
    except OSError as error:
        raise ValueError("cannot parse") from error


try:
    parse()
except ValueError:
    raise RuntimeError("cannot report")
