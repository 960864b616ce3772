1 + 1  # the sum
# nothing more
