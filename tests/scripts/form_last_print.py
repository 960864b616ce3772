print("shown")
