#!/usr/bin/env python3
"""Checks the pages of a built book: docs/book/check.py DIRECTORY

Every link within the book leads to a file and, where it names one, to an element of that page. No page loads anything
from elsewhere: a reader without a network sees all of it, and no one else learns what is read.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address the browser loads by itself. `href` is one of them in `link` only.
LOADED = {"src", "srcset", "poster", "data"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loaded = set(), [], []
        self.style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.style = tag == "style"
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.names.add(value)
            elif name in LOADED or (name == "href" and tag == "link"):
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "style":
                self.loaded += addresses(value or "")

    def handle_data(self, data):
        if self.style:
            self.loaded += addresses(data)


def addresses(style):
    """The addresses that a style sheet loads."""
    return re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", style)


def main(directory):
    root = Path(directory).resolve()
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(root.rglob("*.html"))}
    problems = []

    def check(page, address, loaded):
        parts = urlsplit(address)
        if parts.scheme == "data":
            return
        if parts.scheme or parts.netloc:
            if loaded:
                problems.append(f"{page.relative_to(root)} loads {address}")
            return
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.is_file() or root not in target.parents:
            problems.append(f"{page.relative_to(root)} links to {address}, which is not in the book")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
            problems.append(f"{page.relative_to(root)} links to {address}: the page has no such heading")

    count = 0
    for path, page in pages.items():
        for address in page.links:
            check(path, address, loaded=False)
        for address in page.loaded:
            check(path, address, loaded=True)
        count += len(page.links) + len(page.loaded)
    for path in sorted(root.rglob("*.css")):
        for address in addresses(path.read_text("utf-8")):
            check(path, address, loaded=True)
    if len(pages) < 20 or count < 500:
        problems.append(f"only {len(pages)} pages with {count} links: is this the book?")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(pages)} pages, {count} links, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    sys.exit(main(sys.argv[1]))
