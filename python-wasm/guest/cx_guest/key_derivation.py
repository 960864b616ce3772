"""`hashlib.pbkdf2_hmac`, which CPython takes from OpenSSL. One call of C code an iteration, so hundreds of thousands
of iterations take seconds.
"""

import _hmac
import hashlib
import hmac


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """Derives a key from a password, as PKCS #5 says in RFC 8018. `dklen` is its length, else that of the hash.

    Raises TypeError and ValueError for what OpenSSL refuses.
    """
    if not isinstance(hash_name, str):
        raise TypeError(f"pbkdf2_hmac() argument 'hash_name' must be str, not {type(hash_name).__name__}")
    password, salt = bytes(memoryview(password)), bytes(memoryview(salt))
    try:
        new = hashlib.new(hash_name)
    except ValueError:
        raise ValueError(f"unsupported hash type {hash_name}") from None
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    if dklen is None:
        dklen = new.digest_size
    if dklen < 1:
        raise ValueError("key length must be greater than 0.")
    if len(password) > new.block_size:
        # As HMAC itself does, but once and not in each iteration.
        new.update(password)
        password = new.digest()
    digest = _function(new.name)
    key = bytearray()
    block = 0
    while len(key) < dklen:
        block += 1
        last = digest(password, salt + block.to_bytes(4, "big"))
        combined = int.from_bytes(last)
        for _ in range(iterations - 1):
            last = digest(password, last)
            combined ^= int.from_bytes(last)
        key += combined.to_bytes(len(last))
    return bytes(key[:dklen])


def _function(name: str):
    """Returns HMAC with this hash, as a function of key and message."""
    found = getattr(_hmac, f"compute_{name}", None)
    return found or (lambda key, message: hmac.digest(key, message, name))
