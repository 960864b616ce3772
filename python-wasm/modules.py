"""Says which modules an import finds at the top level, without those that begin with an underscore.

A script: the host runs it in a real instance. `found` is what src/engine/python/survey/modules.txt has, a name a line;
`loaded` are all that are there before a script runs, among them those of cx. A test compares both with the host.
"""

import sys

from cx_guest import refused

finder = next(finder for finder in sys.meta_path if isinstance(finder, refused.Finder))
loaded = {name.partition(".")[0] for name in sys.modules}
result = {"found": finder.names, "loaded": sorted(name for name in loaded if not name.startswith("_"))}
result
