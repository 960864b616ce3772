import hashlib

hashlib.scrypt(b"password", salt=b"salt", n=2, r=8, p=1)
