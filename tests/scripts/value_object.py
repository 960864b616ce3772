class Point:
    def __init__(self):
        self.x = 1


return [Point()]
