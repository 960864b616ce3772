match 1:
    case x:
        pass
    case y:
        pass
