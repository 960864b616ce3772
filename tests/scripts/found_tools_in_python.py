[found] = await search_tools("image", 1)
print(found)
return {
    "found": found,
    "keys": list(found),
    "name": found["name"],
    "parameters": found.get("parameters"),
    "has": ["parameters" in found, "nothing" in found, found.get("nothing", 1)],
}
