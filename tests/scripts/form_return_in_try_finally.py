try:
    return "returned"
finally:
    print("finally")
