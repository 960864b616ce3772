if inputs["n"] < 0:
    return "negative"
elif inputs["n"] == 7:
    return "seven"
else:
    return "other"
