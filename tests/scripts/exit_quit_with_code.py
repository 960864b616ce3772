quit(2)
