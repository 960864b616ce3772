import sys

print("a", 1, None, [1, "x"], {"k": 1.5})
print("a", "b", sep="-", end="!\n")
print()
print("no newline", end="")
print(" continued")
print("to stderr", file=sys.stderr)
print("flushed", flush=True)
print("several\nlines\n")
