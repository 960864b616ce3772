import sys

results = []
for action in (sys.stdin.read, sys.stdin.readline, lambda: list(sys.stdin), lambda: sys.stdin.buffer.read()):
    try:
        results.append(action())
    except EOFError as error:
        results.append(str(error))
return results
