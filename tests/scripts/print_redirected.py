import contextlib
import io

out = io.StringIO()
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
    print("captured")
print("shown")
return out.getvalue()
