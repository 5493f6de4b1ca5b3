"""Views for notebooks in light and dark themes, and in narrow cells."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import pytest

from skescore.rules import Fallback, Interval, Rule, RuleSet, RuleStatistics

RULES = RuleSet(
    [
        Rule([Interval(0, upper=30, missing=True), Interval(1, lower=0.5)], "a<b", None, 1.0),
        Rule([Interval(1, upper=0.25)], "declined", RuleStatistics(40, (10, 30))),
    ],
    ["age in years " * 3, "share & more"],
    task="classification",
    ordered=True,
    fallback=Fallback("a<b"),
)
GOOD = (
    "return getComputedStyle(document.querySelector('.skescore-view')).getPropertyValue('--good')"
)


def open_view(browser: Any, path: Path, *, attributes: str = "", color: str = "#000") -> None:
    path.write_text(
        '<!DOCTYPE html><html lang="en" data-ready="true"><head><meta charset="utf-8"><title>n'
        "</title><style>.jp-RenderedHTMLCommon td{text-align:right;color:#123456}"
        f"p{{color:inherit}}</style></head><body {attributes} style='color:{color}'><main>"
        f"<h1>n</h1><div class='jp-RenderedHTMLCommon'>{RULES._repr_html_()}</div></main></body>"
        "</html>",
        encoding="utf-8",
    )
    browser.open(path)


@pytest.mark.parametrize(
    ("system", "attributes", "is_dark"),
    [
        ("light", "", False),
        ("dark", "", True),
        ("dark", 'data-jp-theme-light="true"', False),
        ("light", 'data-jp-theme-light="false"', True),
        ("light", 'class="vscode-dark"', True),
        ("dark", 'class="vscode-light"', False),
    ],
)
def test_view_follows_the_theme_of_the_notebook(
    browser: Any, tmp_path: Path, system: str, attributes: str, is_dark: bool
) -> None:
    browser.command(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": system}]
    )
    open_view(browser, tmp_path / "view.html", attributes=attributes, color="#abcdef")
    assert browser.run(GOOD) == ("#5cc193" if is_dark else "#2e7d5b")
    color = "return getComputedStyle(document.querySelector('.rules td:nth-child(2)')).color"
    assert browser.run(color) == "rgb(171, 205, 239)"


@pytest.mark.parametrize("width", [390, 900])
def test_view_fits_and_is_accessible(browser: Any, tmp_path: Path, width: int) -> None:
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=800,
        deviceScaleFactor=1,
        mobile=False,
    )
    open_view(browser, tmp_path / "view.html")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.querySelector('.scroll').scrollWidth") <= width
    assert escape("a<b") not in browser.text(".rules")
    assert "40 rows, 75 % of this class" in browser.text(".rules")
    assert not browser.violations()
    assert not browser.requests()
