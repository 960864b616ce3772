import contextlib
import io

with contextlib.redirect_stdout(io.StringIO()) as captured:
    print("captured")
    return captured.getvalue()
