import os
import random
import secrets
import uuid

values = [random.random(), secrets.token_hex(8), uuid.uuid4(), os.urandom(4).hex(), random.SystemRandom().random()]
return [len(set(map(str, values))), uuid.uuid4() != uuid.uuid4(), random.Random(1).randint(0, 100)]
