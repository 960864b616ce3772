codes = []
circle = {}
circle["self"] = circle
for value in [{"deep": [b"x"]}, circle, lambda: 1]:
    for write in [lambda: state.set("k", value), lambda: state.update("k", lambda _: value)]:
        try:
            await write()
        except McpToolError as error:
            codes.append({"code": error.code, "message": str(error)})
return {"codes": codes, "keys": await state.keys()}
