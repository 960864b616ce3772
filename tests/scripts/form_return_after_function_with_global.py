count = 0


def increase():
    global count
    count += 1


increase()
increase()
return count
