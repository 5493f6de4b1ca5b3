"""Real headless Chromium, and pages for it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loaded_files import load_file

#: Requirements that `tox` names must be installed; elsewhere missing ones are skipped.
NEEDED = os.environ.get("SKESCORE_ENGINES", "").split(",")
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,1000",
)


def give_up(reason: str) -> None:
    if "browser" in NEEDED:
        pytest.fail(f"browser: {reason}")
    pytest.skip(f"browser: {reason}")


@pytest.fixture(scope="session")
def runs() -> ModuleType:
    """Return the module that writes run folders."""
    return load_file("report/runs.py")


#: All folded parts opened, axe-core gives its rule and the elements of each violation.
AXE = """
const done = arguments[0];
const folded = [...document.querySelectorAll("details:not([open])")];
folded.forEach((one) => { one.open = true; });
const told = ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" ")}`;
setTimeout(() => axe.run(document, { resultTypes: ["violations"] }).then((found) => {
  folded.forEach((one) => { one.open = false; });
  done(found.violations.map(told));
}));
"""


def axe_source() -> str:
    """Return the script of axe-core from its package or the file in SKESCORE_AXE."""
    if "SKESCORE_AXE" in os.environ:
        return Path(os.environ["SKESCORE_AXE"]).read_text(encoding="utf-8")
    if importlib.util.find_spec("axe_core_python") is None:
        give_up("axe-core-python is not installed")
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


class Browser:
    """Chromium with the methods that tests of pages need."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.page = ""

    def open(self, path: Path) -> None:
        self.driver.get_log("performance")  # forget earlier pages
        self.driver.get_log("browser")
        self.page = path.resolve().as_uri()
        self.driver.get(self.page)
        end = time.monotonic() + 90
        ready = "return document.documentElement.dataset.ready || null"
        while self.run(ready) is None and time.monotonic() < end:
            time.sleep(0.05)  # on a busy machine, the browser may answer before it has started
        assert self.run(ready) == "true", self.complaints()

    def run(self, script: str, *values: Any) -> Any:
        """Run a script in the page; gives what it returns."""
        return self.driver.execute_script(script, *values)

    def settled(self, script: str, *values: Any) -> Any:
        """Run a script, let the page draw itself, and give the second script's value."""
        action, _, result = script.partition("//then")
        return self.driver.execute_async_script(
            f"const done = arguments[arguments.length - 1]; {action};"
            "requestAnimationFrame(() => setTimeout(() => "
            f"{{ done((() => {{ {result} }})()); }}));",
            *values,
        )

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def wait_for(self, selector: str, part: str, seconds: float = 30.0) -> str:
        """Wait until a text has some part; gives the text as it then is."""
        end = time.monotonic() + seconds
        while part not in (text := self.text(selector)) and time.monotonic() < end:
            time.sleep(0.02)
        assert part in text
        return text

    def wait_until(self, script: str, seconds: float = 30.0) -> Any:
        """Wait until a script gives something else than null; gives it."""
        end = time.monotonic() + seconds
        while (outcome := self.run(script)) is None and time.monotonic() < end:
            time.sleep(0.02)
        assert outcome is not None, script
        return outcome

    def texts(self, selector: str) -> list[str]:
        outcome = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )
        return list(outcome)

    def element(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def complaints(self) -> list[str]:
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return all requests of the page since it was opened, except for the page itself."""
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        urls = [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        ]
        # The first page of the window may still have been loading.
        ours = urls[urls.index(self.page) + 1 :] if self.page in urls else urls
        return [url for url in ours if not url.startswith(("data:", "blob:", "chrome"))]

    def violations(self) -> list[str]:
        """Return the violations that axe-core finds in the page."""
        if not self.run("return typeof axe === 'object'"):
            self.run(axe_source())
        return list(self.driver.execute_async_script(AXE))

    def command(self, name: str, **values: Any) -> Any:
        """Send one of the browser's own commands."""
        return self.driver.execute_cdp_cmd(name, values)


@pytest.fixture(scope="session")
def _driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if importlib.util.find_spec("selenium") is None:
        give_up("selenium is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    server = shutil.which("chromedriver")
    if program is None or server is None:
        give_up("no chromium and chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(server))
    driver.set_script_timeout(90)  # a busy machine may draw late
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(_driver: Any) -> Iterator[Browser]:
    result = Browser(_driver)
    yield result
    result.command("Emulation.setEmulatedMedia", media="", features=[])
    result.command("Emulation.clearDeviceMetricsOverride")


@pytest.fixture(scope="session")
def _usual(runs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from skescore.report import write_report

    return write_report(runs.write_run(tmp_path_factory.mktemp("usual") / "run"))


@pytest.fixture
def usual(browser: Browser, _usual: Path) -> Browser:
    """Return a page of twenty candidates in its initial state; reading it takes a while."""
    if browser.driver.current_url != _usual.resolve().as_uri():
        browser.open(_usual)
    else:
        browser.run(
            "byId('reset').click(); scrollTo(0, 0); page.tradeOff.show(page.content.groups[0])"
        )
        browser.settled("//then return 1")
    browser.page = _usual.resolve().as_uri()
    return browser


@pytest.fixture
def opened(browser: Browser, runs: ModuleType, tmp_path: Path) -> Callable[..., Browser]:
    """Write a page of a run and open it."""
    from skescore.report import write_report

    def opened(*values: Any, **options: Any) -> Browser:
        browser.open(write_report(runs.write_run(tmp_path / "run", *values, **options)))
        return browser

    return opened
