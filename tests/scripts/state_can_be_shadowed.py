state = {"help": 1}


def help():
    return state["help"] + 1


return [state["help"], help()]
