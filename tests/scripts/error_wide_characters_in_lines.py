names = {"Zoë": "😀"}
print("😀😀", names["Zoë"], names["Zoe"])
