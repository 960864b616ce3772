import io
import logging

text = io.StringIO()
logging.basicConfig(stream=text, format="%(relativeCreated)d %(message)s")
logging.warning("first")
milliseconds, message = text.getvalue().split()
# Since the script began, and not since the interpreter was built.
[0 <= int(milliseconds) < 60_000, message]
