"""dbt models are rendered by Jinja and run in DuckDB."""

from __future__ import annotations

import duckdb
import jinja2
import pytest

from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
from skescore.rules.exporters import to_dbt

HOSTILE = ["{{ x }}", "{% raw %}", "{% endraw %}", "{# no #}", "{{{", "it's"]


def render(text):
    environment = jinja2.Environment(keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(text).render(
        config=lambda materialized: "",
        ref=lambda model: f'"{model}"',
        source=lambda source, table: f'"{source}"."{table}"',
    )


def test_dbt_model_predicts():
    rules = RuleSet(
        [
            *(Rule([OneOf(1, [text])], text) for text in HOSTILE),
            Rule([Interval(0, upper=2.5)], "small"),
        ],
        ["size {{", "kind"],
        task="classification",
        fallback=Fallback("{{ otherwise }}"),
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute('CREATE TABLE parts ("size {{" DOUBLE, kind TEXT)')
        rows = [(1.0, None), (3.0, "x"), *((9.0, text) for text in HOSTILE)]
        connection.executemany("INSERT INTO parts VALUES (?, ?)", rows)
        result = connection.execute(render(to_dbt(rules, "parts"))).fetchall()
        assert [row[-1] for row in result] == ["small", "{{ otherwise }}", *HOSTILE]
        numbers = connection.execute(render(rules.to("dbt", table="main.parts", kind="assign")))
        assert [row[-1] for row in numbers.fetchall()] == [7, None, 1, 2, 3, 4, 5, 6]


def test_dbt_reads_boolean_columns():
    rules = RuleSet(
        [Rule([Interval(0, lower=0.5)], "yes")],
        ["vip"],
        task="classification",
        fallback=Fallback("no"),
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE people (vip BOOLEAN)")
        connection.execute("INSERT INTO people VALUES (TRUE), (FALSE), (NULL)")
        sql = render(rules.to("dbt", table="people", booleans=["vip"]))
        assert [row[-1] for row in connection.execute(sql).fetchall()] == ["yes", "no", "no"]
    with pytest.raises(ValueError, match="booleans names the feature 'vips'"):
        rules.to("dbt", table="people", booleans=["vips"])


def test_dbt_of_oracle_names_the_rows_before_a_star():
    rules = RuleSet([Rule([], "a")], ["size"], task="classification")
    model = render(to_dbt(rules, "shop.parts", dialect="oracle"))
    assert "select\n  stored_rows.*," in model
    assert model.endswith('from "shop"."parts" stored_rows\n')


def test_dbt_needs_a_model():
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    with pytest.raises(ValueError, match="dbt requires the name"):
        rules.to("dbt")
    for name in ("", "a.b.c", "a."):
        with pytest.raises(ValueError, match="model must be"):
            to_dbt(rules, name)
