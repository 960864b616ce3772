# Files by their descriptors: reads and writes at an offset, and what descriptors cannot do.
import os

path = "/tmp/file"
file = os.open(path, os.O_RDWR | os.O_CREAT)
print(os.pwrite(file, b"hello world", 0), os.pread(file, 5, 6), os.pread(file, 5, 100))
os.ftruncate(file, 5)
os.utime(file, (1, 2))
os.fdatasync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_SEQUENTIAL)
print(os.fstat(file).st_size, os.fstat(file).st_mtime, os.path.samefile(path, path), os.isatty(file))
print(os.lseek(file, -2, os.SEEK_END), os.read(file, 9), os.write(file, b"!"), os.pread(file, 9, 0))
os.utime(file)
print(os.fstat(file).st_mtime > 2)

for what, act in {
    "a link": lambda: os.readlink(path),
    "entries of a file": lambda: os.listdir(path),
    "a file as a directory": lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY),
    "a directory to write": lambda: os.open("/tmp", os.O_WRONLY),
    "before the beginning": lambda: os.pread(file, 1, -1),
    "a write to what is read": lambda: os.pwrite(os.open(path, os.O_RDONLY), b"x", 0),
    "a read of what is written": lambda: os.pread(os.open(path, os.O_WRONLY), 1, 0),
    "a second descriptor": lambda: os.dup(file),
}.items():
    try:
        print(what, act())
    except OSError as error:
        print(f"{what}: {type(error).__name__}: {error}")
