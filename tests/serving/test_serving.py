"""Server of rules: rows are checked, and predictions equal those of the rules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.datasets import ColumnReading, Preparation, read_table
from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet
from skescore.serving import RowReader
from skescore.serving._app import MAX_ROWS, RequestError, predictions_of, rows_of
from skescore.serving._page import form_page

ROOT = Path(__file__).parents[2]
RULES = RuleSet(
    [
        Rule([Interval(0, upper=30, missing=True), OneOf(1, ["Rome"])], "no"),
        Rule([Interval(0, lower=60)], "<b>yes</b>"),
        Rule([OneOf(1, ["7"])], "no"),
    ],
    ["age", "city", "unused"],
    task="classification",
    ordered=True,
    domain=Domain((0, 0, 0), (99, 3, 1), [(1, ["Rome", "Oslo", "7"])], (0.1, 0, 0)),
)
READER = RowReader(RULES)
ROWS = st.fixed_dictionaries(
    {
        "age": st.one_of(st.none(), st.integers(0, 99), st.floats(-1e300, 1e300)),
        "city": st.sampled_from(["Rome", "Oslo", "7", 7, 7.0, None]),
    },
    optional={"unused": st.text(max_size=3), "other": st.none()},
)


@given(st.lists(ROWS, min_size=1, max_size=8), st.booleans())
def test_predictions_equal_those_of_the_rules(rows: list[Any], has_fallback: bool) -> None:
    rules = RULES.replace(fallback=Fallback("no")) if has_fallback else RULES
    answer = predictions_of(rules, RowReader(rules), rows_of(json.dumps({"rows": rows}).encode()))
    for row, record in zip(rows, answer["predictions"], strict=True):
        age, city = row["age"], None if row["city"] is None else str(row["city"]).removesuffix(".0")
        young = age is None or age <= 30
        rule = 1 if young and city == "Rome" else 2 if age is not None and age > 60 else None
        rule = 3 if rule is None and city == "7" else rule
        output = RULES[rule - 1].output if rule else "no" if has_fallback else None
        assert (record["rule"], record["prediction"]) == (rule, output)
        assert (record["text"] is None) == (rule is None)


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ({"age": "old", "city": "Rome"}, "age", r"a number.*got 'old'.*such as 12\.5"),
        ({"age": "True", "city": "Rome"}, "age", "a number.*Write true without quotation marks"),
        ({"age": 10**400, "city": "Rome"}, "age", "must be finite"),
        ({"age": 1, "city": "Paris"}, "city", "one of 'Rome', 'Oslo'.*got 'Paris'"),
        ({"age": 1, "city": ["Rome"]}, "city", r"a string.*got \['Rome'\]"),
        ({"Age ": 1, "city": "Rome"}, "age", "no column 'age'.*Rename 'Age '"),
        ({"city": "Rome"}, "age", "Write null"),
        (["Rome"], None, "must be an object"),
    ],
)
def test_row_errors_name_column_value_and_remedy(
    row: Any, column: str | None, message: str
) -> None:
    good = {"age": 1, "city": "Rome"}
    with pytest.raises(RequestError) as caught:
        predictions_of(RULES, READER, [good, row])
    (error,) = caught.value.errors
    assert (caught.value.status, error["row"], error["column"]) == (422, 2, column)
    assert re.search(message, error["message"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "must be JSON"),
        (b'{"age": NaN, "city": null}', "must be JSON"),
        (b"\xff", "must be JSON"),
        (b"3", "must be"),
        (b"[]", "from 1 to"),
        (f"[{'1,' * MAX_ROWS}1]".encode(), "got 10001"),
    ],
)
def test_request_errors_have_messages(body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        rows_of(body)


def test_page_shows_deciding_rule_and_errors() -> None:
    page, status = form_page(RULES, READER, {"age": "70", "city": "Oslo"})
    assert status == 200
    assert "&lt;b&gt;yes&lt;/b&gt;" in page
    assert "by rule 2, the first that holds" in page
    assert "<b>yes</b>" not in page
    assert "<script" not in page
    page, status = form_page(RULES, READER, {"age": '"><script>', "city": ""})
    assert status == 422
    assert "&#x27;age&#x27; of row 1 must be a number" in page
    assert "<script" not in page
    assert "No rule holds." in form_page(RULES, READER, {})[0]
    assert 'role="status"' not in form_page(RULES, READER, None)[0]


def test_booleans_equal_one_and_zero() -> None:
    rules = RuleSet(
        [Rule([Interval(0, lower=0.5), OneOf(1, [False])], "yes")],
        ["vip", "paid"],
        task="classification",
        fallback=Fallback("no"),
    )
    rows = [{"vip": vip, "paid": paid} for vip in (True, False) for paid in (False, True, None)]
    answer = predictions_of(rules, RowReader(rules), rows_of(json.dumps(rows).encode()))
    assert [record["prediction"] for record in answer["predictions"]] == ["yes"] + ["no"] * 5
    for vip, paid, answers in [
        ("True", "false", "yes"),
        ("true", "False", "yes"),
        ("false", "0", "no"),
    ]:
        page, status = form_page(rules, RowReader(rules), {"vip": vip, "paid": paid})
        assert (status, f"prediction: {answers}" in page) == (200, True)


# --- dates ---------------------------------------------------------------------------------------

DAYS, WEEKDAY = "joined: days since 2019-01-01", "joined: weekday"
DATE_RULES = RuleSet(
    [
        Rule([Interval(0, lower=730), OneOf(1, ["Monday", "Tuesday"])], "late"),
        Rule([Interval(0, upper=59), Interval(3, upper=5)], "early"),
    ],
    [DAYS, WEEKDAY, "joined: hour", "age"],
    task="classification",
    fallback=Fallback("other"),
    domain=Domain((0, 0, 0, 0), (999, 3, 23, 9), [(1, ["Monday", "Tuesday", "Friday"])]),
)
DATE_COLUMN = ColumnReading(
    "joined", "date", format="%d.%m.%Y", first="2019-01-01", parts=("days", "weekday", "hour")
)
GERMAN = Preparation((DATE_COLUMN, ColumnReading("age", "number")))
ISO = Preparation((replace(DATE_COLUMN, format="%Y-%m-%d"), ColumnReading("age", "number")))


@pytest.mark.parametrize("preparation", [GERMAN, None])
def test_dates_are_read_like_those_of_tables(preparation: Preparation | None) -> None:
    reader = RowReader(DATE_RULES, preparation)
    days = pd.to_datetime(["2021-03-01", "2021-03-02", "2021-03-05", "2019-02-28", "2019-03-02"])
    texts = days.strftime("%d.%m.%Y" if preparation else "%Y-%m-%d").tolist()
    rows = [{"joined": text, "age": 1} for text in [*texts, None]]
    predictions = predictions_of(DATE_RULES, reader, rows)["predictions"]
    expected = ["late", "late", "other", "early", "other", "other"]
    assert [record["prediction"] for record in predictions] == expected
    table = read_table(pd.DataFrame(rows), preparation=preparation or ISO).frame
    columns = list(DATE_RULES.feature_names[:2])
    pd.testing.assert_frame_equal(reader.read(rows)[0][columns], table[columns], check_dtype=False)
    parts = [{DAYS: 59, WEEKDAY: "Monday", "age": None}, {DAYS: 59, WEEKDAY: None, "age": 5}]
    predictions = predictions_of(DATE_RULES, reader, parts)["predictions"]
    assert [record["prediction"] for record in predictions] == ["other", "early"]


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ({"age": 1}, "joined", r"no column 'joined'.*such as '31\.03\.2026', or null"),
        ({"Joined ": "1.1.2021", "age": 1}, "joined", "Rename 'Joined '"),
        ({"joined": "soon", "age": 1}, "joined", r"a date such as '31\.03\.2026'.*got 'soon'"),
        ({"joined": 2021, "age": 1}, "joined", "a date such as .*got 2021"),
        ({DAYS: 3, "age": 1}, WEEKDAY, "no column 'joined: weekday'"),
    ],
)
def test_date_errors_name_the_column_of_the_table(row: Any, column: str, message: str) -> None:
    good = {"joined": "01.03.2021", "age": 1}
    with pytest.raises(RequestError) as caught:
        predictions_of(DATE_RULES, RowReader(DATE_RULES, GERMAN), [good, row])
    (error,) = caught.value.errors
    assert (error["row"], error["column"]) == (2, column)
    assert re.search(message, error["message"])


def test_errors_follow_the_order_of_rows() -> None:
    rows = [{"joined": "soon", "age": 1}, {"joined": None, "age": "old"}]
    _, errors = RowReader(DATE_RULES, GERMAN).read(rows)
    assert [error.row for error in errors] == [1, 2]


def test_form_contains_date_of_derived_features() -> None:
    reader = RowReader(DATE_RULES, GERMAN)
    page, status = form_page(DATE_RULES, reader, {"joined": "02.03.2021", "age": ""})
    assert status == 200
    assert "prediction: late" in page
    assert 'name="joined" value="02.03.2021" placeholder="31.03.2026"' in page
    assert 'name="joined: ' not in page


def test_grouped_categories_are_read_as_other() -> None:
    rules = RuleSet(
        [Rule([OneOf(0, ["other"])], "rare")],
        ["city"],
        task="classification",
        fallback=Fallback("usual"),
        domain=Domain((0,), (2,), [(0, ["Rome", "other"])]),
    )
    rows = [{"city": "Rome"}, {"city": "Paris"}]
    for preparation in (None, Preparation((ColumnReading("city", "category", values=("Rome",)),))):
        answer = predictions_of(rules, RowReader(rules, preparation), rows)["predictions"]
        assert [record["prediction"] for record in answer] == ["usual", "rare"]
    plain = Preparation((ColumnReading("city", "category"),))
    with pytest.raises(RequestError, match="must be one of"):
        predictions_of(rules, RowReader(rules, plain), rows)


def test_serve_reads_the_preparation_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skescore.cli import main

    preparations: list[Any] = []

    def refuse(ruleset: RuleSet, *, preparation: Any, hosts: Any) -> None:
        preparations.append(preparation)
        raise ValueError("no server in this test")

    monkeypatch.setattr("skescore.cli._serve.import_optional", lambda *args, **options: None)
    monkeypatch.setattr("skescore.serving.make_app", refuse)
    DATE_RULES.save(tmp_path / "rules.json")
    data = {"features": list(DATE_RULES.feature_names), "table": GERMAN.to_dict()}
    for text in ("{}", json.dumps({"data": data})):
        (tmp_path / "run.json").write_text(text, encoding="utf-8")
        assert main(["serve", str(tmp_path / "rules.json")]) == 1
    assert preparations == [None, GERMAN]


# --- the server ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run ``skescore serve``; give its address."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    folder = tmp_path_factory.mktemp("serve")
    RULES.save(folder / "rules.json")
    command = [sys.executable, "-m", "skescore", "serve", "rules.json", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            match = re.search(r"at (http://127\.0\.0\.1:\d+/)", process.stderr.readline())
            assert match
            yield match[1]
        finally:
            process.terminate()
            rest = process.stderr.read()
    assert "Traceback" not in rest
    assert "secret" not in rest  # requests are not logged
    assert sorted(path.name for path in folder.iterdir()) == ["rules.json"]


def request(address: str, body: bytes | None = None, **headers: str) -> tuple[int, str, Any]:
    query = urllib.request.Request(address, data=body, headers=headers)
    try:
        with urllib.request.urlopen(query, timeout=30) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


@pytest.mark.engine
def test_server_responds_over_http(server: str) -> None:
    schema = json.loads((ROOT / "docs/_static/schemas/serve.json").read_text(encoding="utf-8"))
    ages = np.linspace(0, 90, 31)
    rows = [{"age": age, "city": "Rome"} for age in ages]
    status, text, headers = request(f"{server}predict", json.dumps({"rows": rows}).encode())
    jsonschema.validate(json.loads(text), schema)
    rules = RULES.assign(pd.DataFrame({"age": ages, "city": "Rome", "unused": 0.0}))
    predicted = [record["rule"] for record in json.loads(text)["predictions"]]
    assert (status, predicted) == (200, [rule + 1 if rule >= 0 else None for rule in rules])
    assert headers["Cache-Control"] == "no-store"
    status, text, _ = request(f"{server}predict", b'{"age": "secret", "city": "Rome"}')
    jsonschema.validate(json.loads(text), schema)
    assert (status, json.loads(text)["errors"][0]["value"]) == (422, "secret")
    assert RuleSet.from_json(request(f"{server}rules")[1]) == RULES
    assert request(f"{server}predict", b"x" * 8_000_001)[0] == 413
    assert request(server, None, Host="evil.example")[0] == 400  # no rebinding of names
    for host in ("localhost", "127.0.0.1:80", "[::1]:80"):
        assert request(server, None, Host=host)[0] == 200
    assert request(f"{server}predict")[0] == 405


@pytest.mark.engine
def test_server_rejects_a_port_in_use(server: str, tmp_path: Path, capsys: Any) -> None:
    from skescore.cli import main

    RULES.save(tmp_path / "rules.json")
    port = server.rpartition(":")[2].strip("/")
    assert main(["serve", str(tmp_path / "rules.json"), "--port", port]) == 1
    assert f"--port {port} cannot be used" in capsys.readouterr().err
