import atexit

atexit.register(print, "at exit")
return "done"
