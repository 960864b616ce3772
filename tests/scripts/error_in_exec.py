code = "a = 1\nb = a / 0\n"
exec(code)
