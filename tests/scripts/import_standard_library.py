import ast, base64, bisect, calendar, collections, contextlib, copy, csv, datetime, decimal, difflib, email.message
import enum, fractions, functools, glob, gzip, hashlib, heapq, hmac, html, html.parser, http, io, ipaddress, itertools
import json, locale, logging, math, mimetypes, operator, pathlib, pprint, random, re, sched, secrets, shlex, sqlite3
import statistics, string, struct, tarfile, tempfile, textwrap, time, timeit, tomllib, traceback, types, typing
import unicodedata, unittest.mock, urllib.parse, uuid, warnings, weakref, xml.etree.ElementTree, zipfile, zlib, zoneinfo

return {
    "sqlite": sqlite3.connect(":memory:").execute("select 1 + 1").fetchone(),
    "xml": xml.etree.ElementTree.fromstring("<a><b>x</b></a>").find("b").text,
    "zone": str(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")).utcoffset()),
    "csv": list(csv.DictReader(io.StringIO("a,b\n1,2\n"))),
    "median": statistics.median([1, 3, 2]),
    "hash": hashlib.sha256(b"x").hexdigest()[:8],
    "toml": tomllib.loads("a = 1"),
    "html": html.unescape("&auml;"),
    "diff": list(difflib.unified_diff(["a"], ["b"], lineterm=""))[2:],
    "gzip": gzip.decompress(gzip.compress(b"x")).decode(),
    "mock": unittest.mock.Mock(return_value=1)(),
}
