import math

return {"math": math}
