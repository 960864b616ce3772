emit({"data": b"x"})
