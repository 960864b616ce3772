def load():
    raise OSError("disk")


try:
    load()
except OSError:
    print("cleaning up")
    raise
