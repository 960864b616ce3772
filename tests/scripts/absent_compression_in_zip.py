import io
import zipfile

zipfile.ZipFile(io.BytesIO(), "w", compression=zipfile.ZIP_BZIP2)
