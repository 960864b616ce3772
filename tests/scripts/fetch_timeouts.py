# A time that is none is a mistake before anything is sent.
shown = []
for timeout in (0, -1, float("nan"), True, "1"):
    try:
        await fetch("http://localhost/", timeout=timeout)
    except TypeError as error:
        shown.append(str(error))
return shown
