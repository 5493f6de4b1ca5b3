"""Widget of rules in a page that stands for a notebook, and in JupyterLab."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.editing import EditLog
from skescore.report import embedded_page
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet, with_statistics

X = pd.DataFrame(
    {"age": np.arange(10.0, 70.0), "income": np.arange(60.0) % 7, "city": ["Rome", "Oslo"] * 30}
)
Y = np.where(X["age"] > 40, "yes", "no")
RULES = with_statistics(
    RuleSet(
        [
            Rule([Interval(0, upper=30)], "no"),
            Rule([Interval(1, upper=2), OneOf(2, ["Rome"])], "no"),
        ],
        list(X),
        task="classification",
        fallback=Fallback("yes"),
        classes=["no", "yes"],
    ),
    X,
    Y,
)
#: A model like that of anywidget, and the widget in a cell with a dark theme.
HARNESS = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Notebook</title>
</head><body data-jp-theme-light="false"><div id="cell"></div><script type="module">
%(script)s
const listeners = {}, state = %(state)s;
window.model = {
  get: (name) => state[name],
  set: (values) => {
    for (const [name, value] of Object.entries(values)) {
      if (state[name] === value) continue;
      state[name] = value;
      (listeners[`change:${name}`] || []).forEach((listener) => listener());
    }
  },
  on: (name, listener) => { (listeners[name] ||= []).push(listener); },
  off: () => {}, save_changes: () => { window.n_saves = (window.n_saves || 0) + 1; },
};
render({ model: window.model, el: document.getElementById("cell") });
document.documentElement.dataset.ready = "true";
</script></body></html>"""
CHANGE = """
const field = document.querySelector(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event("change"));
"""


class Cell:
    """The widget in a page that stands for a notebook."""

    def __init__(self, browser: Any, path: Path, page: str) -> None:
        self.browser = browser
        script = files("skescore.notebook").joinpath("widget.js").read_text(encoding="utf-8")
        state = {"page": page, "candidate": None, "log": "", "base": None}
        text = json.dumps(state).replace("<", "\\u003c")
        path.write_text(HARNESS % {"script": script, "state": text}, encoding="utf-8")
        browser.open(path)
        self.inside()
        browser.wait_until("return document.documentElement.dataset.ready || null")

    def inside(self) -> None:
        self.browser.driver.switch_to.default_content()
        self.browser.driver.switch_to.frame(self.browser.element("iframe"))

    def outside(self, script: str, *values: Any) -> Any:
        self.browser.driver.switch_to.default_content()
        result = self.browser.run(script, *values)
        self.inside()
        return result

    def log(self, n_steps: int) -> EditLog:
        """Return the log of the model once it has so many steps."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            text = self.outside("return window.model.get('log')")
            log = EditLog.from_json(text) if text else None
            if log is not None and len(log.records) == n_steps:
                return log
            time.sleep(0.05)
        raise AssertionError(f"no log of {n_steps} steps")


def base_of(log: EditLog) -> dict[str, Any]:
    """Return what the widget sends after an edit of Python."""
    past, future = log.history.past, log.history.future
    return {
        "n_steps": len(log.records),
        "rules": json.loads(log.rules.to_json()),
        "past": [json.loads(rules.to_json()) for rules in past],
        "future": [json.loads(rules.to_json()) for rules in future],
    }


def test_widget_shares_edits_with_the_model(browser: Any, tmp_path: Path) -> None:
    page, content = embedded_page(RULES, X, Y)
    cell = Cell(browser, tmp_path / "notebook.html", page)
    assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches")
    height = cell.outside("return parseInt(document.querySelector('iframe').style.height)")
    assert 500 < height < 5000
    browser.run(CHANGE, "#edit-rules li:nth-child(1) input", "40")
    log = cell.log(1)
    assert log.rules[0].conditions == (Interval(0, upper=40),)
    assert log.start == RULES
    # Edits that only Python has, then one of the page, then undoing all.
    log.append({"action": "split", "number": 1, "feature": "income", "bound": 3.0}, time="now")
    oslo = {"action": "set_categories", "number": 3, "feature": "city", "values": ["Oslo"]}
    log.append(oslo, time="now")
    set_both = "window.model.set({ base: arguments[0], log: arguments[1] })"
    cell.outside(set_both, base_of(log), log.to_json())
    browser.wait_until("return page.editor.log.steps.length === 3 || null")
    assert len(browser.texts("#edit-rules > li")) == 3
    assert "city = Oslo" in browser.text("#edit-rules li:nth-child(3)")
    browser.run(CHANGE, "#edit-rules li:nth-child(3) select", "1")
    assert cell.log(4).rules[2].output == "yes"
    for n_steps in (5, 6, 7, 8):
        browser.element("#edit-undo").click()
        log = cell.log(n_steps)
    assert log.rules == RULES
    assert content["editing"]["about"] == log.rows
    assert not browser.complaints()
    browser.driver.switch_to.default_content()


# --- JupyterLab ----------------------------------------------------------------------------------

CELLS = (
    "import numpy as np, warnings\nfrom sklearn.datasets import load_iris\n"
    "from sklearn.neighbors import KNeighborsClassifier\nfrom skescore import ExtractorSearchCV\n"
    "from skescore.notebook import RulesWidget\nX, y = load_iris(return_X_y=True, as_frame=True)\n"
    "search = ExtractorSearchCV(KNeighborsClassifier(9), extractors=['cart'], n_trials=6, cv=3,"
    " random_state=0, progress_bar=True).fit(X, y)\nsearch",
    "widget = RulesWidget(search)\nwidget",
    "print('seen', len(widget.log_.records), widget.candidate, widget.rules_)",
    "rules = widget.edit({'action': 'drop', 'number': len(widget.log_.rules)})\n"
    "print('left', len(rules))",
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Run JupyterLab with a notebook; give the address of the notebook."""
    pytest.importorskip("jupyterlab")
    pytest.importorskip("anywidget")
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [cell | {"id": f"c{k}", "source": source} for k, source in enumerate(CELLS)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "rules.ipynb").write_text(json.dumps(book), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex()
    options = (
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={tmp_path}",
        f"--IdentityProvider.token={token}",
    )
    folders = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        env={**os.environ, **folders, "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
            break
        except OSError:
            time.sleep(0.2)
    try:
        yield f"{address}/lab/tree/rules.ipynb?token={token}"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
def test_widget_works_in_jupyterlab(browser: Any, lab: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = browser.driver

    def run_cell(number: int) -> None:
        driver.switch_to.default_content()
        editors = "document.querySelectorAll('.jp-CodeCell .cm-content')"
        browser.wait_until(f"return {editors}.length >= {len(CELLS)} || null", 60)
        prompt = f"return document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')[{number}]"
        end = time.monotonic() + 90
        # JupyterLab ignores a cell that is run before the kernel has started.
        while browser.run(f"{prompt}.textContent").strip("[]: ") == "" and time.monotonic() < end:
            field = driver.find_elements("css selector", ".jp-CodeCell .cm-content")[number]
            browser.run("arguments[0].scrollIntoView({ block: 'center' })", field)
            field.click()
            keys = ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER)
            keys.key_up(Keys.SHIFT).perform()
            time.sleep(1)

    def output(number: int, part: str) -> str:
        driver.switch_to.default_content()
        texts = (
            f"[...document.querySelectorAll('.jp-CodeCell')[{number}]"
            ".querySelectorAll('.jp-OutputArea-output')].map((o) => o.innerText).join()"
        )
        part = json.dumps(part)
        script = f"const text = {texts}; return text.includes({part}) ? text : null"
        return str(browser.wait_until(script, 120))

    def enter_widget() -> None:
        driver.switch_to.default_content()
        browser.wait_until("return document.querySelector('.jp-CodeCell iframe') && 1 || null", 60)
        driver.switch_to.frame(browser.element(".jp-CodeCell iframe"))
        browser.wait_until("return document.documentElement.dataset.ready || null", 60)

    driver.get(lab)
    run_cell(0)
    assert "agree with the model" in output(0, "KNeighborsClassifier")
    run_cell(1)
    enter_widget()
    slide = (
        "byId('slider').value = arguments[0]; byId('slider').dispatchEvent(new Event('input'));"
        "//then return page.tradeOff.chosen"
    )
    chosen = {browser.settled(slide, position) for position in (1, -1)}
    assert len(chosen) == 2
    candidate = browser.run("return page.tradeOff.chosen")
    rule = browser.run("return page.rules.view.rules[0].line")
    run_cell(2)
    text = output(2, "seen 0")
    assert f"seen 0 {candidate} " in text
    assert rule.partition("  ")[0] in text
    run_cell(3)
    n_left = int(output(3, "left").rpartition(" ")[2])
    enter_widget()
    browser.wait_until(f"return page.editor.log.set.rules.length === {n_left} || null")
    assert browser.run("return page.editor.log.steps.length") == 1
    driver.switch_to.default_content()
