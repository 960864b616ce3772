"yes" if inputs["n"] == 7 else "no"
