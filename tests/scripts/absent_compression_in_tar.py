import io
import tarfile

tarfile.open(fileobj=io.BytesIO(b"x"), mode="r:xz")
