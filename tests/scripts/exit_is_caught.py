import sys

try:
    sys.exit(3)
except SystemExit as error:
    return error.code
