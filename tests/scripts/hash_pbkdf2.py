import hashlib

cases = [
    ("sha1", b"password", b"salt", 1, 20),
    ("sha1", b"passwordPASSWORDpassword", b"saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 25),
    ("sha256", b"passwd", b"salt", 1, 64),
    ("SHA256", bytearray(b"p"), memoryview(b"s"), 1000, None),
    ("sha512", b"longer than a block " * 10, b"\0", 3, 100),
    ("sha3_256", b"", b"", 2, 33),
    ("blake2b", b"p", b"s", 2, None),
]
keys = [hashlib.pbkdf2_hmac(*case).hex() for case in cases]
refused = []
for wrong in (
    ("sha256", "text", b"s", 1),
    ("sha256", b"p", b"s", 0),
    ("sha256", b"p", b"s", 1, 0),
    ("no-such-hash", b"p", b"s", 1),
    (b"sha256", b"p", b"s", 1),
):
    try:
        refused.append(hashlib.pbkdf2_hmac(*wrong))
    except (TypeError, ValueError) as error:
        refused.append([type(error).__name__, str(error)])
return {"keys": keys, "refused": refused, "listed": "pbkdf2_hmac" in hashlib.__all__}
