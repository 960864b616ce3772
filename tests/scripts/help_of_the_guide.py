import contextlib, io


def shown(*topic):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        help(*topic)
    return text.getvalue()


guide = shown()
return {
    "begins": guide.split("\n")[0],
    "own": "```py" in guide,
    "others": "```ts" in guide,
    "same": shown(tools) == guide and shown("") == guide and shown(None) == guide,
    "section": shown("state").split("\n")[0],
    "other": shown("allowedTools").split("\n")[0],
}
