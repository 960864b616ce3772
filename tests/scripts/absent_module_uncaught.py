import json

import pandas as pd

return pd.DataFrame(inputs["list"])
