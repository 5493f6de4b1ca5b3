"""Views for notebooks: escaped texts, no scripts, no other files, and the shares of all rules."""

from __future__ import annotations

import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor
from skescore._html import notebook_view, table_html, text_html, tiles_html, warnings_html
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
from skescore.rules.exporters._html import counted_tiles

TEXTS = st.text(st.sampled_from("ab<>&\"'/={}\n "), max_size=12)


class Reader(HTMLParser):
    """Parser of a view that collects its texts and checks that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def check_is_inert(html: str) -> str:
    """Check that a view neither runs scripts nor loads anything; return its text."""
    reader = Reader(html)
    assert reader.tags <= {
        *("style", "div", "p", "b", "span", "ul", "li", "details", "summary"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    }
    assert not {name for name in reader.attributes if name.startswith("on")}
    assert reader.attributes.isdisjoint({"src", "href", "srcdoc"})
    assert "url(" not in html
    assert "@import" not in html
    style = html[html.index("<style>") : html.index("</style>")]
    selectors = re.findall(r"(?:^|\})\s*([^{}@]+)\{", re.sub(r"@[^{]+\{", "", style[7:]))
    assert selectors
    assert all(".skescore-view" in one for line in selectors for one in line.split(",\n"))
    return reader.text


@given(TEXTS, TEXTS, TEXTS)
def test_views_show_texts_as_they_are(a: str, b: str, c: str) -> None:
    parts = [
        a,
        text_html("headline", b),
        *warnings_html([c]),
        tiles_html([(a, b, c)]),
        table_html([a, "second"], [[b, c], [a]], c),
    ]
    text = check_is_inert(notebook_view(parts))
    expected = f"{a}{b}Read this first{c}{a}{b}{c}{c}{a}second{b}{c}{a}"
    assert text.replace("\r", "\n") == expected


def test_rules_view_escapes_names_and_labels() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1), OneOf(1, ["<i>"])], "<script>alert(1)</script>")],
        ["<b>x</b>", "&amp;"],
        task="classification",
        fallback=Fallback("<script>alert(1)</script>"),
    )
    text = check_is_inert(rules._repr_html_())
    assert 'if "<b>x</b>" ≤ 1 AND "&amp;" = <i>' in text
    assert text.count("<script>alert(1)</script>") == 2


@pytest.mark.parametrize("seed", range(4))
def test_counted_tiles_equal_shares_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((200, 3)), columns=list("abc"))
    y = np.where(X["a"] + rng.normal(0, 0.3, 200) > 0.5, "yes", "no")
    model = DecisionTreeClassifier(max_depth=4, random_state=seed).fit(X, y)
    extractor = CARTExtractor(model, max_leaf_nodes=3, sampling=None, random_state=0).fit(X, y)
    predictions = extractor.predict(X)
    labels = (extractor.estimator_.predict(X), y)
    shares = [f"{100 * np.mean(predictions == label):.0f} %" for label in labels]
    tiles = counted_tiles(extractor.rules_, "training rows")
    assert [(figure.replace("> ", ""), text) for figure, text, _ in tiles] == [
        (shares[0], "agree with the model"),
        (shares[1], "right (data)"),
    ]
    assert {rows for _, _, rows in tiles} == {"of 200 training rows with a rule"}


def test_fitted_extractor_shows_rules_and_parameters() -> None:
    X = pd.DataFrame({"size": np.arange(40.0)})
    y = np.r_[np.zeros(20), np.full(20, 5.0)]
    extractor = CARTExtractor(DecisionTreeRegressor(random_state=0), max_leaf_nodes=2)
    assert "skescore-view" not in extractor._repr_html_()
    view, _, parameters = extractor.fit(X, y)._repr_html_().partition("<details>")
    text = check_is_inert(view)
    assert "2 rules instead of DecisionTreeRegressor, using 1 of 1 column" in text
    assert "20 rows, mean error 0 (model), 0 (data)" in text
    assert "sk-top-container" in parameters


def test_docs_check_finds_unnamed_images(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "docs" / "check_links.py"
    check: Any = runpy.run_path(str(path))
    named = '<img src="a.png" alt="Rules of iris as boxes"><img src="b.png" alt="" role="none">'
    (tmp_path / "index.html").write_text(f"{named}<a href='#top'>x</a>", encoding="utf-8")
    assert check["unnamed_images"](tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<img src="c.png"><img src="d.png" alt=" "><img src="e.png" alt="e.png">', encoding="utf-8"
    )
    assert [line.partition(": ")[2] for line in check["unnamed_images"](tmp_path)] == [
        "c.png",
        "d.png",
        "e.png",
    ]
