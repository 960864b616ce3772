import os
import pathlib
import shutil

found = {}


def attempt(name, action):
    try:
        found[name] = action()
    except OSError as error:
        found[name] = type(error).__name__


pathlib.Path("/tmp/reports/old").mkdir(parents=True)
pathlib.Path("/tmp/reports/a.csv").write_text("id,name\n1,Ada\n")
with open("/tmp/reports/a.csv", "a") as file:
    file.write("2,Grace\n")
pathlib.Path("relative.bin").write_bytes(bytes([0, 255, 7]))
shutil.copyfile("/tmp/reports/a.csv", "/tmp/reports/old/b.csv")
os.rename("/tmp/reports/old/b.csv", "/tmp/reports/old/c.csv")
found["text"] = open("/tmp/reports/a.csv").read()
found["bytes"] = list(open("/tmp/relative.bin", "rb").read())
found["names"] = sorted(os.listdir("/tmp/reports"))
found["root"] = os.listdir("/")
found["size"] = os.stat("/tmp/reports/old/c.csv").st_size
found["kinds"] = [os.path.isdir("/tmp/reports/old"), os.path.isfile("/tmp/reports/a.csv")]
attempt("missing", lambda: open("/tmp/missing").read())
attempt("outside", lambda: open("/etc/passwd").read())
attempt("above", lambda: open("/tmp/../etc/passwd").read())
attempt("write outside", lambda: open("/etc/new", "w"))
attempt("directory", lambda: open("/tmp/reports", "w"))
attempt("exists", lambda: os.mkdir("/tmp/reports"))
attempt("not empty", lambda: os.rmdir("/tmp/reports"))
attempt("exclusive", lambda: open("/tmp/relative.bin", "x"))
shutil.rmtree("/tmp/reports")
found["left"] = sorted(os.listdir("/tmp"))
return found
