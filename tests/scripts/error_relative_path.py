open("data.csv")
