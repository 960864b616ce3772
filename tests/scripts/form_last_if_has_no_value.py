if True:
    5
