return [__name__, __file__, __doc__, __import__("sys").argv]
