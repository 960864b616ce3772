import sys

sys.stdout.close()
print("after close")
