"""`help`: the guide, a server, a tool, or Python's own help."""

from cx_guest.errors import McpToolError
from cx_guest.output import printable
from cx_guest.queries import query_now
from cx_guest.servers import Server


def help(topic=None) -> None:
    """Prints the guide, or its part about a word, a server or a tool. For anything else it prints Python's own help."""
    if isinstance(topic, Server):
        about = topic.__dict__["__cx_server__"]
    elif getattr(type(topic), "__cx_all__", False):
        about = None
    elif topic is None or isinstance(topic, str):
        about = topic
    else:
        about = getattr(topic, "__cx_tool__", None)
        if about is None:
            print(_python_help(topic))
            return
    question = {"kind": "help"} if about is None else {"kind": "help", "topic": printable(about)}
    try:
        text = query_now(question)
    except McpToolError:
        # `help("json.dumps")`: a word that is not in the guide may name something of Python's.
        import pydoc

        found = pydoc.locate(about)
        if found is None:
            raise
        text = _python_help(found)
    print(text)


def _python_help(value) -> str:
    import pydoc

    return pydoc.render_doc(value, renderer=pydoc.plaintext)
