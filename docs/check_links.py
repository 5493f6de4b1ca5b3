"""Check the links inside the built site, and the alternative texts of its images.

    python docs/check_links.py FOLDER

Exits with 1 if a link leads nowhere or an image has no alternative text. Links to other sites are
not followed.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links, images and link targets of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        #: Sources of images without an alternative text; a file name does not count as a text.
        self.unnamed_images: list[str] = []
        self.places = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        text, source = attributes.get("alt", "").strip(), attributes.get("src", "")
        is_hidden = attributes.get("aria-hidden") == "true" or attributes.get("role") == "none"
        if tag == "img" and not is_hidden and (not text or text == source):
            self.unnamed_images.append(source)
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


def unnamed_images(folder: Path) -> list[str]:
    """Return every image without an alternative text, with its page."""
    return [
        f"{path.relative_to(folder)}: {source}"
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
        for source in page(path).unnamed_images
    ]


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    nowhere, unnamed = broken(site), unnamed_images(site)
    print(*nowhere, *unnamed, sep="\n")
    print(f"{len(nowhere)} links lead nowhere, {len(unnamed)} images have no alternative text")
    sys.exit(bool(nowhere or unnamed))
