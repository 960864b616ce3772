import csv
import os
import pathlib
import sqlite3
import tempfile
import zipfile

with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory, "a.csv")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", 1], ["b", 2]])
    rows = list(csv.reader(path.open()))
    with zipfile.ZipFile("/tmp/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "inner/a.csv")
with zipfile.ZipFile("/tmp/a.zip") as archive:
    zipped = archive.read("inner/a.csv").decode()
with sqlite3.connect("/tmp/data.db") as database:
    database.execute("create table numbers (n)")
    database.executemany("insert into numbers values (?)", [(n,) for n in range(1000)])
total = sqlite3.connect("/tmp/data.db").execute("select sum(n) from numbers").fetchone()
with open("/tmp/both", "w+b") as file:
    file.write(b"0123456789")
    file.seek(3)
    file.write(b"xyz")
    file.seek(0)
    both = file.read().decode()
    file.truncate(4)
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("named")
    file.flush()
    named = open(file.name).read()
return [rows, zipped, total, both, os.path.getsize("/tmp/both"), named, os.path.exists(directory), os.getcwd()]
