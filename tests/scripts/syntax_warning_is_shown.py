import re

pattern = "\d+"
return re.findall(pattern, "1 22")
