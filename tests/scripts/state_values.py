value = {"b": [1, 2.5, None], "a": "ö", "nested": {"deep": True}}
before = [await state.get("k"), await state.get("k", 7), await state.delete("k"), await state.keys()]
await state.set("k", value)
await state.set("__proto__", {"polluted": 1})
state.set_sync("null", None)
after = [await state.get("k"), state.get_sync("__proto__"), await state.get("null", 7), await state.keys("n")]
gone = [state.delete_sync("k"), await state.get("k", "gone"), state.keys_sync()]
return {"before": before, "after": after, "gone": gone, "polluted": None}
