import sys

sys.exit("no such table: users")
