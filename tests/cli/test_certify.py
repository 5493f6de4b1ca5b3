from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.certificates import Certificate
from skescore.cli import main
from skescore.extractors import CARTExtractor
from skescore.rules import Rule, RuleSet

FAST = ["--seconds", "20", "--cuts", "2", "--max-rules", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a search with a certificate."""
    path = tmp_path_factory.mktemp("certified") / "run"
    words = [
        "tune",
        "iris",
        "--extractors",
        "cart",
        "--trials",
        "3",
        "--cv",
        "2",
        "--black-box",
        "decision-tree",
        "--quiet",
        "--certify",
        "20",
        "--output",
        str(path),
    ]
    assert main(words) == 0
    return path


def test_tune_writes_a_certificate(folder):
    text = (folder / "certificate.json").read_text(encoding="utf-8")
    certificate = Certificate.from_json(text)
    assert certificate.kinds == ("tree", "list")
    recorded = json.loads((folder / "run.json").read_text(encoding="utf-8"))["certificate"]
    assert recorded == certificate.to_text().split("\n")
    assert certificate.held_out is not None
    assert len(certificate.held_out["best"]) == 2
    assert "On held-out rows, its" in recorded[-1]


def test_certify_writes_and_checks_a_certificate(folder, run, tmp_path):
    file = tmp_path / "certificate.json"
    code, out, _ = run(
        "certify", folder / "rules.json", "iris", "--scoring", "fire", *FAST, "--output", file
    )
    assert code == 0
    assert "On these 150 rows, against species, 3 rules have FiRe" in out
    assert re.search(r"^    3 +(\d+) +\1  optimal$", out, flags=re.M)
    code, out, _ = run("certify", "--check", file, "iris")
    assert code == 0
    assert out.endswith("verdict: confirmed\n")
    changed = json.loads(file.read_text(encoding="utf-8"))
    changed["frontiers"][0]["upper"][2] -= 1
    file.write_text(json.dumps(changed), encoding="utf-8")
    code, out, _ = run("certify", "--check", file, "iris", "--format", "json")
    assert code == 1
    assert json.loads(out)["verdict"] == "rejected"


def test_certify_check_reads_text_columns(run, tmp_path):
    colors, sizes = ["red", "green", "blue"] * 20, ["small", "large"] * 30
    rows = pd.DataFrame({"color": colors, "size": sizes})
    rows["good"] = np.where((rows["color"] == "red") & (rows["size"] == "small"), "yes", "no")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    extractor = CARTExtractor(
        make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0))
    )
    extractor = extractor.fit(rows[["color", "size"]], rows["good"])
    extractor.rules_.save(tmp_path / "rules.json")
    data = [tmp_path / "rows.csv", "--target", "good"]
    file = tmp_path / "certificate.json"
    assert run("certify", tmp_path / "rules.json", *data, *FAST, "--output", file)[0] == 0
    code, out, _ = run("certify", "--check", file, *data)
    assert (code, out.splitlines()[-1]) == (0, "verdict: confirmed")


def test_certify_prints_readable_json(folder, run):
    words = ["certify", folder / "rules.json", "iris", *FAST, "--kinds", "tree", "--phi", "3"]
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    certificate = Certificate.from_json(out)
    assert certificate.settings["weights"] == {"phi": 3, "rho": 1}
    assert certificate.kinds == ("tree",)
    code, out, _ = run(*words, "--format", "markdown")
    assert "| rules |" in out


def test_certify_stops_at_tolerance(tmp_path, run):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 4)).round(2), columns=list("abcd"))
    frame["y"] = rng.choice(["u", "v"], 90)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    rules = RuleSet([Rule((), "u")], list("abcd"), task="classification", classes=["u", "v"])
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    words = [
        "certify",
        tmp_path / "rules.json",
        tmp_path / "noise.csv",
        "--target",
        "y",
        "--max-rules",
        "5",
        "--kinds",
        "tree",
        "--format",
        "json",
    ]
    _, out, _ = run(*words, "--tolerance", "0.5")
    few = Certificate.from_json(out)
    _, out, _ = run(*words)
    restored = Certificate.from_json(out)
    assert few.frontiers[0].status[-1] == "target"
    assert restored.frontiers[0].status[-1] == "optimal"
    assert few.gap("tree") <= 0.5


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["certify", "nothing.json", "iris"], 1, "There is no file nothing.json"),
        (["certify", "--check", "nothing.json", "iris"], 1, "There is no file nothing.json"),
        (["certify", "--check", __file__, "iris", "--output", "b"], 2, "a check writes nothing"),
        (["certify", __file__, "iris", "--kinds", "forest"], 2, "forest"),
        (["certify", __file__, "iris", "--seconds", "0"], 2, "must be a number above 0"),
        (["certify", __file__, "iris", "--tolerance", "0"], 2, "must be a number above 0"),
        (["tune", "iris", "--scoring", "accuracy", "--certify", "1"], 2, "not available for"),
        (["tune", "iris", "--tolerance", "0.1"], 2, "add --certify SECONDS"),
    ],
)
def test_certify_reports_invalid_requests(run, words, code, message):
    result, _, err = run(*words)
    assert result == code
    assert message in " ".join(err.split())


@pytest.mark.slow
def test_certify_check_uses_class_weights(run, tmp_path):
    file = tmp_path / "run" / "certificate.json"
    words = ["--extractors", "cart", "--trials", "1", "--cv", "2", "--black-box", "decision-tree"]
    weighed = ["--class-weight", "balanced"]
    out = ["--quiet", "--certify", "9", "--output", file.parent]
    assert run("tune", "wine", *words, *weighed, *out)[0] == 0
    code, _, err = run("certify", "--check", file, "wine")
    assert code == 1
    assert "add --class-weight balanced" in " ".join(err.split())
    code, out, _ = run("certify", "--check", file, "wine", *weighed)
    assert (code, out.split("\n")[0]) == (0, "The 178 rows have the checksum of the certificate.")
    _, out, _ = run("certify", file.with_name("rules.json"), "wine", *weighed, *FAST)
    assert "On these 178 rows with their weights" in out


def test_certify_check_rejects_other_files(folder, run):
    code, _, err = run("certify", "--check", folder / "rules.json", "iris")
    assert code == 1
    assert "is not a certificate" in " ".join(err.split())
