"""Check that every link inside the built site leads to a page, and to a place on it.

    python docs/check_links.py FOLDER

Exits with 1 if one does not. Links to other sites are not followed.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places on it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif (tag, name) in {("a", "href"), ("img", "src")} and value:
                self.links.append(value)


page = cache(Page)


def broken(folder: Path) -> list[str]:
    """Return every link that leads nowhere, with its page."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        if "_static" in path.parts:
            continue
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fine = target.exists() and (
                target.suffix != ".html" or unquote(parts.fragment) in page(target).places
            )
            if not fine:
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


if __name__ == "__main__":
    nowhere = broken(Path(sys.argv[1]).resolve())
    print(*nowhere, sep="\n")
    print(f"{len(nowhere)} links lead nowhere")
    sys.exit(bool(nowhere))
