"""Measure how fast the page of ``skescore report`` opens and re-ranks, and its size.

    python benchmarks/speed/report_page.py [--candidates 500] [--moves 40] [--repeats 3]

Needs Chromium with its driver, and selenium. The script generates a run with `--candidates`
candidates on five folds, writes its page and opens the page from disk in a headless browser. All
times are measured in the page: from the start of the navigation until the page can be used, and
from the input event of a slider until scores, leaderboard and plot have changed (`re-rank`) and
until the browser has drawn them (`drawn`). The table shows the best and median times with their
limits. The exit code is 1 if a best time exceeds its limit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from skescore.datasets import load_dataset
from skescore.report import write_report
from skescore.report._candidates_file import candidates_json
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet
from skescore.tuning import Candidate, Candidates

OPEN_SECONDS, MEGABYTES, RANK_MILLISECONDS = 1.0, 2.0, 100.0
BROWSER_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
MOVE_SCRIPT = """
const [name, position, done] = arguments, slider = document.getElementById(name);
requestAnimationFrame(() => {
  const begin = performance.now();
  slider.value = position;
  slider.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() =>
    done([page.tradeOff.milliseconds, performance.now() - begin])));
});
"""


def write_run(folder: Path, n_candidates: int) -> None:
    """Write a run on wine with random measurements of candidates."""
    random = np.random.default_rng(0)
    wine = load_dataset("wine")
    values = wine.X.to_numpy()
    low, high = values.min(axis=0), values.max(axis=0)
    candidates = []
    for number in range(n_candidates):
        size = int(random.integers(1, 60))
        folds = tuple(
            {
                "performance": random.uniform(0.3, 1),
                "loss": random.uniform(0, 0.7),
                "loss_q": random.uniform(0, 0.7),
                "n_rules": size,
                "size": size,
                "completeness_volume": random.uniform(0.3, 1),
                "completeness_instances": random.uniform(0.7, 1),
                "score": random.uniform(0, 1),
                "seconds": random.uniform(0, 3),
                "black_box_calls": 5,
                "black_box_rows": random.uniform(100, 5000),
            }
            for _ in range(5)
        )
        params = {
            "max_leaf_nodes": number,
            "min_samples_leaf": 3,
            "tolerance": random.uniform(0, 1),
        }
        candidates.append(Candidate.from_measures(f"extractor{number % 8}", params, number, folds))
    rules = RuleSet(
        [
            Rule(
                [Interval(j, (11 * low[j] + high[j]) / 12 * k) for j in range(k % 5 + 1)],
                f"class_{k % 3}",
            )
            for k in range(1, 12)
        ],
        wine.X.columns.tolist(),
        task="classification",
        fallback=Fallback("class_1"),
        domain=Domain(tuple(low), tuple(high)),
    )
    run = {
        "data": {
            "name": "wine",
            "source": wine.source,
            "checksum_sha256": wine.checksum,
            "task": wine.task,
            "target": wine.y.name,
            "rows": len(wine.X),
            "rows_dropped": 0,
            "features": wine.X.columns.tolist(),
            "categories": [],
        },
        "black_box": {"name": "knn", "trained_here": True, "quality": {"accuracy": 0.95}},
        "search": {
            "scoring": "ice",
            "weights": {"psi": 1.0, "phi": 1.0, "rho": 1.0},
            "completeness": "volume",
            "reference": "data",
            "extractors": ["cart"],
            "trials": n_candidates,
            "cv": 5,
            "seed": 0,
            "seconds": 1.0,
        },
        "run": {},
        "notes": [],
    }
    text = candidates_json(
        Candidates(candidates), winner=(candidates[0].extractor, 0), standard_errors=1.0
    )
    (folder / "candidates.json").write_text(text)
    (folder / "rules.json").write_text(rules.to_json())
    (folder / "run.json").write_text(json.dumps(run))


def start_browser(folder: Path) -> Any:
    """Start a headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    server = shutil.which("chromedriver")
    if program is None or server is None:
        sys.exit("Chromium and its driver are missing: apt install chromium chromium-driver")
    options = Options()
    options.binary_location = program
    for switch in (*BROWSER_OPTIONS, f"--user-data-dir={folder / 'chromium'}"):
        options.add_argument(switch)
    return webdriver.Chrome(options=options, service=Service(server))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    open_seconds, rank_milliseconds, draw_milliseconds = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder, options.candidates)
        page = write_report(folder)
        size = page.stat().st_size / 1e6
        driver = start_browser(folder)
        try:
            version = driver.capabilities["browserVersion"]
            for _ in range(options.repeats):
                driver.get(page.as_uri())
                open_seconds.append(driver.execute_script("return page.ready") / 1000)
            for number in range(options.moves):
                position = np.sin(number)
                milliseconds = driver.execute_async_script(
                    MOVE_SCRIPT, ("phi", "rho")[number % 2], position
                )
                rank_milliseconds.append(milliseconds[0])
                draw_milliseconds.append(milliseconds[1])
        finally:
            driver.quit()
    rows = [
        ("size of the file, MB", [size], MEGABYTES),
        ("opens from disk, s", open_seconds, OPEN_SECONDS),
        ("re-rank after a move of a slider, ms", rank_milliseconds, RANK_MILLISECONDS),
        ("until the change is drawn, ms", draw_milliseconds, None),
    ]
    print(f"{options.candidates} candidates, five folds, Chromium {version}\n")
    print("| measured | best | median | limit |\n| :-- | --: | --: | --: |")
    for title, values, limit in rows:
        limit_text = "" if limit is None else f"{limit:g}"
        print(f"| {title} | {min(values):.2f} | {statistics.median(values):.2f} | {limit_text} |")
    return int(any(limit is not None and min(values) > limit for _, values, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
