import os
import platform
import sys

return [sys.platform, sys.version_info[:2], platform.system(), os.getcwd(), sys.argv, os.name, sys.maxsize > 2**32]
