"""Adds numbers.

Of the input.
"""

import json

sum(inputs["list"])
