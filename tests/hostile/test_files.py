"""Mutants of every file format are read correctly or rejected at once by a clear error.

``SKESCORE_HOSTILE=10000`` makes as many mutants of each.
"""

from __future__ import annotations

import copy
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from attempts import at_most, pick
from sklearn.linear_model import LogisticRegression

from skescore.bench import read_config, read_rows
from skescore.black_boxes import load_model
from skescore.certificates import Certificate
from skescore.datasets import load_dataset
from skescore.metrics import RuleCounts
from skescore.report import read_candidates, write_report
from skescore.rules import RuleSet
from skescore.rules.importers import read_decision_rules, read_rulekit_text
from skescore.tuning.storage import open_storage

FORMATS = Path(__file__).parents[1] / "data" / "formats"
#: Values for JSON in which something else is expected.
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    10**400,
    1e308,
    -0.0,
    5e-324,
    "",
    "\0",
    "nan",
    "=1+1",
    "a" * 5000,
    [],
    {},
    [[]],
    [None],
    {"": None},
    ["a"] * 100,
    {"type": "interval"},
    "\ud800",
]
#: Texts that are no JSON, or none that is accepted.
WORDS = ["NaN", "Infinity", "1e999", "-1e999", "[" * 3000, '{"a":' * 3000, "\\u0000", "1" * 5000]


def mutated_bytes(rng, content):
    """Return the bytes with some removed, inserted, repeated or changed."""
    content = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(content) + 1))
        length = int(rng.integers(1, 1 + pick(rng, [1, 8, 200])))
        form = rng.integers(5)
        if form == 0:
            del content[at : at + length]
        elif form == 1:
            content[at:at] = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        elif form == 2:
            content[at:at] = content[at : at + length]
        elif form == 3:
            del content[at:]
        else:
            word = pick(rng, [*WORDS[:4], "\0", "\xff", '"', "\n", ",", "=1+1", "-", "9" * 30])
            content[at : at + length] = word.encode("latin-1")
    return bytes(content)


def places(value):
    """Return all containers within a value of JSON with their keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def mutated_json(rng, data):
    """Return a value with some parts exchanged, removed or added, as text."""
    data, mark = copy.deepcopy(data), "\x01here\x01"
    for _ in range(int(rng.integers(1, 4))):
        containers = list(places(data))
        if not containers:
            break
        holder, key = pick(rng, containers)
        form = rng.integers(6)
        if form == 0:
            del holder[key]
        elif form == 1 and isinstance(holder, dict):
            holder[pick(rng, ["", "type", "further", "\0"])] = copy.deepcopy(pick(rng, VALUES))
        elif form == 2:
            other, at = pick(rng, containers)
            if at in other if isinstance(other, dict) else at < len(other):
                holder[key] = copy.deepcopy(other[at])
        elif form == 3:
            holder[key] = mark
        else:
            holder[key] = copy.deepcopy(pick(rng, VALUES))
    text = json.dumps(data)
    return text.replace(json.dumps(mark), pick(rng, WORDS))


def as_file(content, path):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_text(content):
    return content.decode(errors="replace") if isinstance(content, bytes) else content


# --- readers ----------------------------------------------------------------------------------


def read_rule_set(content, path):
    ruleset = RuleSet.from_json(as_text(content))
    assert RuleSet.from_json(ruleset.to_json()) == ruleset
    # Results can be queried and written.
    rows = np.zeros((2, ruleset.n_features))
    with np.errstate(all="ignore"):
        ruleset.match(rows)
    assert str(ruleset) is not None
    return ruleset


def read_journal(content, path):
    storage = open_storage(str(as_file(content, path)))
    for study in storage.get_all_studies():
        storage.get_all_trials(study._study_id)


def read_report(content, path):
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    for name in ("rules.json", "candidates.json", "leaderboard.csv"):
        (folder / name).write_bytes((FORMATS / "run" / name).read_bytes())
    as_file(content, folder / "run.json")
    write_report(folder, path=path, time_limit=0.5)


def read_table(content, path):
    data = load_dataset(str(as_file(content, path)), target="y")
    assert len(data.X) == len(data.y)


def read_model(content, path):
    load_model(str(as_file(content, path)))


NAMES = ["length (cm)", "it's", "color"]
REPORT = """Rules:
r1: IF length (cm) = <0.8, 1.75) AND color = {red} THEN label = {a} (p=8.0, n=0.0, weight=0.9)
r2: IF [it's = <0.50, inf) AND length (cm) = (-inf, 1)] AND color = !{red} THEN label = {b}

General information:
"""
CONFIG = b"""name = "a bench"
data = ["iris", {source = "houses.csv", target = "price", drop = ["id"]}]
black_boxes = [{label = "9-NN", name = "knn", scaled = false, params = {n_neighbors = 9}}]
seeds = [0, 1]
folds = 5
test_size = 0.5
time_limit = 10.5
[[extractors]]
label = "4 slices"
name = "gridex"
params = {n_slices = 4}
[[extractors]]
name = "search"
extractors = ["cart", "gridex"]
trials = 30
"""
DECISION_RULES = {
    "meta": {
        "attributes": ["length", "color of it"],
        "decision_attribute": "kind",
        "decision_attribute_distribution": {"a": 3, "b": 4},
        "default_conclusion": {"value": "b"},
    },
    "rules": [
        {
            "uuid": "1",
            "string": "",
            "voting_weight": 0.5,
            "conclusion": {"value": "a"},
            "coverage": {"p": 2, "n": 0, "P": 3, "N": 4},
            "premise": {
                "type": "compound",
                "attributes": [],
                "negated": False,
                "operator": "CONJUNCTION",
                "subconditions": [
                    {
                        "type": "elementary_numerical",
                        "attributes": [0],
                        "negated": False,
                        "left": 0.5,
                        "right": None,
                        "left_closed": True,
                        "right_closed": False,
                    },
                    {
                        "type": "elementary_nominal",
                        "attributes": [1],
                        "negated": True,
                        "value": "red",
                    },
                ],
            },
        }
    ],
}
CSV = b'a,"b ""x""",zip,y\n1,2.5,01234,yes\n-3,,00501,no\n4e300,"1,5",501,yes\n"",nan,1,no\n'


def parquet():
    table = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"], "y": [0, 1]})
    file = io.BytesIO()
    table.to_parquet(file, index=False)
    return file.getvalue()


def model():
    return skops.io.dumps(LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 1]))


def kept(name):
    return lambda: (FORMATS / name).read_bytes()


#: Each file: a function that makes one, its reader, its name, and its share of mutants in 1000.
FILES = {
    "rules": (kept("rules.json"), read_rule_set, "rules.json", 1.0),
    "candidates": (
        kept("run/candidates.json"),
        lambda c, p: read_candidates(as_text(c)),
        "c.json",
        1.0,
    ),
    "certificate": (
        kept("certificate.json"),
        lambda c, p: Certificate.from_json(as_text(c)),
        "c.json",
        1.0,
    ),
    "counts": (kept("counts.json"), lambda c, p: RuleCounts.from_json(as_text(c)), "c.json", 1.0),
    "decision-rules": (
        lambda: json.dumps(DECISION_RULES).encode(),
        lambda c, p: read_decision_rules(as_text(c)),
        "d.json",
        1.0,
    ),
    "run": (kept("run/run.json"), read_report, "report.html", 0.03),
    "journal": (kept("journal.log"), read_journal, "journal.log", 0.3),
    "rows of a bench": (
        kept("bench_rows.csv"),
        lambda c, p: read_rows(as_file(c, p)),
        "rows.csv",
        1.0,
    ),
    "configuration": (lambda: CONFIG, lambda c, p: read_config(as_file(c, p)), "bench.toml", 1.0),
    "CSV": (lambda: CSV, read_table, "table.csv", 0.3),
    "Parquet": (parquet, read_table, "table.parquet", 0.3),
    "model": (model, read_model, "model.skops", 0.3),
    "RuleKit": (
        lambda: REPORT.encode(),
        lambda c, p: read_rulekit_text(as_text(c), feature_names=NAMES),
        "r.txt",
        1.0,
    ),
}
#: Files whose names are in the error, as nothing else identifies them.
NAMED = {"rows of a bench", "configuration", "CSV", "Parquet", "model", "journal"}


@pytest.mark.parametrize("kind", FILES)
def test_mutants_are_read_or_rejected(attack, kind, tmp_path):
    original, read, name, share = FILES[kind]
    content = original()
    path = tmp_path / name
    records = None
    if name.endswith(".json") or kind == "run":
        records = json.loads(content)
        records = [r["rules"] for r in records] if kind == "rules" else [records]
    elif kind == "journal":
        records = [json.loads(line) for line in content.splitlines()]

    def mutant(rng):
        if records is None or rng.random() < 0.2:
            whole = content
            if kind == "rules":
                whole = json.dumps(pick(rng, records)).encode()
            return mutated_bytes(rng, whole)
        if kind != "journal":
            return mutated_json(rng, pick(rng, records))
        at = int(rng.integers(len(records)))
        lines = [json.dumps(record, separators=(",", ":")) for record in records]
        lines[at] = mutated_json(rng, records[at])
        return "\n".join(lines) + "\n"

    def check(rng):
        mutated, refusal = mutant(rng), None
        try:
            with at_most(20), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                read(mutated, path)
        except (ValueError, TypeError, ImportError, FileNotFoundError) as error:
            refusal = error
        if refusal is not None:
            message = str(refusal)
            assert not isinstance(refusal, UnicodeError | json.JSONDecodeError), repr(refusal)
            assert len(message) > 20, repr(refusal)
            if isinstance(refusal, FileNotFoundError):
                assert kind in ("configuration", "run"), repr(refusal)
            else:
                assert kind not in NAMED or name in message, repr(refusal)
                ours = kind in NAMED or (kind == "decision-rules" and "must be" in message)
                assert ours or not isinstance(refusal, TypeError), repr(refusal)

    attack(check, max(2, round(12 * share)), share)
