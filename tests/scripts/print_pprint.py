from pprint import pprint

pprint({"rows": [{"id": n, "name": "x" * 30} for n in range(3)]})
