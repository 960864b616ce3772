import json

if json.dumps({}):
    import pandas as pd

return pd.DataFrame(inputs["list"])
