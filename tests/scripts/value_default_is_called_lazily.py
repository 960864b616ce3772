class Lazy:
    def __iter__(self):
        yield 1


return [Lazy()]
