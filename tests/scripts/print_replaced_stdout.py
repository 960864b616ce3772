import sys


class Upper:
    def __init__(self, inner):
        self.inner = inner

    def write(self, text):
        return self.inner.write(text.upper())

    def flush(self):
        self.inner.flush()


sys.stdout = Upper(sys.stdout)
print("loud")
