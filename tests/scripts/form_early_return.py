if inputs["n"] == 2:
    return "early"
return "late"
