print("all", end=" ")
print("here", end="")
return 1
