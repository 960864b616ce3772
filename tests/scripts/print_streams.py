import os
import sys

sys.stdout.write("written ")
sys.stdout.write("twice\n")
sys.stdout.writelines(["a\n", "b\n"])
sys.stderr.write("error\n")
sys.stdout.buffer.write("bytes ä\n".encode())
sys.__stdout__.write("original\n")
os.write(1, b"descriptor\n")
return [sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.writable()]
