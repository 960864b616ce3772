row = None
print(row["id"] or "none")
