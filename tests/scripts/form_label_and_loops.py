for a in [1, 2, 3]:
    while True:
        break
    if a == 2:
        break
    continue
else:
    raise AssertionError("not broken")
"done"
