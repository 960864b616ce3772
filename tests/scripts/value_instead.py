import io
import re
import sqlite3
import xml.etree.ElementTree as ElementTree
from bs4 import BeautifulSoup


class Model:
    def model_dump(self):
        return {}


class Rows:
    def __iter__(self):
        return iter([1])


class Slots:
    __slots__ = ("a",)


database = sqlite3.connect(":memory:")
database.row_factory = sqlite3.Row
answer = {"items": [1]}
page = BeautifulSoup("<p>", "html.parser")
values = [
    re.match("a", "a"),
    re.compile("a"),
    t"a{1}",
    database.execute("select 1 as one").fetchone(),
    ElementTree.fromstring("<a/>"),
    page,
    page.p,
    io.StringIO(),
    io.BytesIO(),
    Model(),
    Rows(),
    Slots(),
    state,
    mock,
    answer.items,
    answer.keys,
]
return [call_tool("mock", "echo", {"n": value})["error"]["message"] for value in values]
