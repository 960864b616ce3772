messages = {}
for name in ("requests", "numpy", "ssl", "ctypes", "multiprocessing", "bz2", "curses", "no_such_module", "js"):
    try:
        __import__(name)
        messages[name] = "imported"
    except ImportError as error:
        messages[name] = [type(error).__name__, str(error)]
return messages
