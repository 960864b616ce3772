try:
    {}["missing"]
except KeyError as error:
    print(error.nope)
