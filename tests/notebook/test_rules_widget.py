"""State of the widget in Python; tests/browser/test_rules_widget.py covers its page."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from skescore import ExtractorSearchCV
from skescore.editing import EditLog
from skescore.notebook import RulesWidget
from skescore.report import embedded_page
from skescore.rules import Interval, Rule, RuleSet

X = pd.DataFrame({"age": np.arange(10.0, 70.0)})
Y = np.where(X["age"] > 40, "yes", "no")
RULES = RuleSet(
    [Rule([Interval(0, upper=30)], "no"), Rule([], "yes")],
    ["age"],
    task="classification",
    ordered=True,
)


def test_embedded_page_needs_rows_and_labels() -> None:
    with pytest.raises(ValueError, match="given together"):
        embedded_page(RULES, X)
    page, content = embedded_page(RULES, X, Y)
    assert 'class="rules embedded"' in page
    assert content["editing"]["about"] == {
        "name": "60 of 60 rows in a report",
        "n_rows": 60,
        "references": ["data"],
    }


def test_widget_names_the_missing_package() -> None:
    if importlib.util.find_spec("anywidget") is not None:
        pytest.skip("anywidget is installed")
    with pytest.raises(ImportError, match=r"needs the package 'anywidget'.*Run: pip install"):
        RulesWidget(RULES)


@pytest.mark.engine
def test_widget_edits_and_undoes() -> None:
    pytest.importorskip("anywidget")
    widget = RulesWidget(RULES, X, Y)
    calls: list[RuleSet] = []
    widget.on_change(lambda changed: calls.append(changed.log_.rules))
    assert widget.rules_ == RULES
    edited = widget.edit({"action": "split", "number": 1, "feature": "age", "bound": 20})
    assert widget.rules_ == edited == calls[-1]
    assert len(edited) == 3
    assert len(widget.widget.base["past"]) == 1
    assert widget.edit({"action": "undo"}) == RULES
    with pytest.raises(ValueError, match="no edit to undo"):
        widget.edit({"action": "undo"})
    # The page continues the log with its own steps.
    log = EditLog.from_json(widget.log_.to_json())
    log.append({"action": "drop", "number": 2}, author="Ann", time="now")
    widget.widget.log = log.to_json()
    assert len(widget.rules_) == 1
    assert widget.log_.records[-1].author == "Ann"
    assert json.loads(widget.log_.to_json())["rows"] == widget._editing["about"]
    with pytest.raises(ValueError, match="cannot be edited: the page needs rows"):
        RulesWidget(RULES).edit({"action": "undo"})


@pytest.mark.engine
def test_widget_returns_rules_of_the_selected_candidate() -> None:
    pytest.importorskip("anywidget")
    search: Any = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=["cart"], n_trials=4, cv=2, random_state=0
    ).fit(*load_iris(return_X_y=True, as_frame=True))
    widget = RulesWidget(search)
    assert widget.rules_ == search.rules_
    other = next(int(k) for k in widget._views if int(k) != widget.candidate)
    widget.candidate = other
    assert widget.rules_ == search.choose(search.candidates_[other]).rules_
    with pytest.raises(ValueError, match="must be the index of a candidate"):
        widget.candidate = 999
    widget.widget.candidate = 999  # selected in the page, which has no rules of it
    with pytest.raises(ValueError, match="rules of candidate 999 are not in the page"):
        _ = widget.rules_
