"""The page of ``skescore serve`` in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet


def test_served_page_predicts_a_row(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    rules = RuleSet(
        [Rule([Interval(0, upper=30)], "no"), Rule([OneOf(1, ["Rome"])], "no")],
        ["age", "city & <more>"],
        task="classification",
        ordered=True,
        domain=Domain((0, 0), (99, 2), [(1, ["Rome", "Oslo"])], (0, 0)),
        fallback=Fallback("yes"),
    )
    rules.save(tmp_path / "rules.json")
    command = [sys.executable, "-m", "skescore", "serve", "rules.json", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        address = re.search(r"http://\S+", process.stderr.readline())
        try:
            assert address
            browser.driver.get(address[0])
            browser.element("[name=age]").send_keys("old")
            browser.element("button").click()
            assert "must be a number" in browser.text(".warnings")
            assert not browser.violations()
            browser.element("[name=age]").clear()
            browser.element("[name=age]").send_keys("41.5")
            browser.run("document.querySelector('select').value = 'Rome'")
            browser.element("button").click()
            assert "prediction: no, by rule 2, the first that holds" in browser.text(".answer")
            assert "were Oslo instead of Rome" in browser.text(".answer")
            assert browser.run("return document.querySelector('[name=age]').value") == "41.5"
            assert not browser.violations()
            size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            browser.command("Emulation.setDeviceMetricsOverride", **size)
            assert browser.run("return document.documentElement.scrollWidth") <= 390
        finally:
            process.terminate()
