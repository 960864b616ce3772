global counter
counter = 1
return counter
