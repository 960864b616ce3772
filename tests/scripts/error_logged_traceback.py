import traceback

try:
    {}["missing"]
except KeyError:
    text = traceback.format_exc()
return text
