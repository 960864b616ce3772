name = input("Name? ")
return name
