wile True:
    break
