import asyncio

found = {}


async def attempt(name, call):
    try:
        value = await call
        found[name] = "kept" if value is None else value
    except McpToolError as error:
        found[name] = {"code": error.code, "message": str(error)}


def text(length):
    return "x" * (length - 2)


await attempt("largest value", state.set("k", text(1 << 20)))
await attempt("larger value", state.set("k", text((1 << 20) + 1)))
await attempt("longest key", state.set("ö" * 256, 1))
await attempt("longer key", state.set("x" * 257, 1))
await attempt("no key", state.get(""))
await asyncio.gather(*(state.set(f"key {index}", index) for index in range(998)))
await attempt("key 1,001", state.set("one more", 1))
await attempt("one that is there", state.set("key 1", "other"))
return {"found": found, "keys": len(await state.keys())}
