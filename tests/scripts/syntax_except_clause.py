try:
    pass
except ValueError, TypeError as error:
    pass
