class Stop(BaseException):
    pass


raise Stop("at once")
