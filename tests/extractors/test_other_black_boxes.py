"""Black boxes of other kinds: clusterers, several outputs, commands and services."""

from __future__ import annotations

import json
import pickle
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import (
    CallableClassifier,
    CallableRegressor,
    CommandFunction,
    as_black_box,
    black_box_task,
    fit_black_box,
    select_output,
)
from skescore.extractors import CARTExtractor, Oracle
from skescore.tuning import ExtractorSearchCV

X, y = load_iris(return_X_y=True, as_frame=True)


# --- clusterers and outlier detectors ---


@pytest.mark.parametrize(
    "model",
    [
        KMeans(3, n_init=1, random_state=0),
        make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)),
        IsolationForest(n_estimators=20, random_state=0),
        EllipticEnvelope(random_state=0),
    ],
)
def test_unsupervised_labels_are_classes(model):
    fitted = clone(model).fit(X)
    expected = fitted.predict(X)
    assert black_box_task(model) == "classification"
    for extractor in (
        CARTExtractor(model, max_leaf_nodes=20, random_state=0).fit(X),
        CARTExtractor(FrozenEstimator(fitted), max_leaf_nodes=20, random_state=0).fit(X),
        CARTExtractor(model, max_leaf_nodes=20, random_state=0).fit(X, y.map("class {}".format)),
    ):
        assert set(extractor.classes_) == set(expected)
        assert np.mean(extractor.predict(X) == expected) > 0.85


def test_clusterers_without_predict_are_rejected():
    with pytest.raises(TypeError, match=r"which DBSCAN lacks\. To explain the labels of the rows"):
        CARTExtractor(DBSCAN()).fit(X)


# --- several outputs ---


def test_select_output_selects_numbers():
    Y = np.column_stack([X["petal length (cm)"] * 2, X["sepal width (cm)"]])
    model = LinearRegression().fit(X, Y)
    assert select_output(model, 1).predict(X) == pytest.approx(Y[:, 1])
    chosen = select_output(model, "double", names=["double", "width"])
    assert isinstance(chosen, CallableRegressor)
    assert chosen.predict(X) == pytest.approx(Y[:, 0])
    rules = CARTExtractor(chosen, max_leaf_nodes=20, random_state=0).fit(X).rules_
    assert np.corrcoef(rules.predict(X), Y[:, 0])[0, 1] > 0.97


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(5, random_state=0), MultiOutputClassifier(KNeighborsClassifier())],
)
def test_select_output_selects_labels(model):
    Y = np.column_stack([y.map("kind {}".format), np.where(X["sepal width (cm)"] > 3, "a", "b")])
    model.fit(X.to_numpy(), Y)
    chosen = select_output(model, "kind", names=["kind", "width"])
    assert isinstance(chosen, CallableClassifier)
    assert chosen.classes_.tolist() == ["kind 0", "kind 1", "kind 2"]
    extractor = CARTExtractor(chosen, max_leaf_nodes=4, random_state=0).fit(X.to_numpy())
    assert np.mean(extractor.predict(X.to_numpy()) == Y[:, 0]) > 0.9
    assert (chosen.predict(X) == chosen.predict(X.to_numpy())).all()  # without a warning


def test_select_output_rejects_unknown_outputs():
    model = LinearRegression().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"output must be .*'a'.*'b'.*got 'c'"):
        select_output(model, "c", names=["a", "b"])
    with pytest.raises(ValueError, match=r"output='c' is a name: pass the names of all outputs"):
        select_output(model, "c")
    with pytest.raises(ValueError, match=r"output=2 must be .* an array of shape \(150, 2\)"):
        select_output(model, 2).predict(X)
    with pytest.raises(ValueError, match=r"output=0 must be .* an array of shape \(150,\)"):
        select_output(LinearRegression().fit(X, y), 0).predict(X)
    with pytest.raises(ValueError, match=r"at a time: select_output\(model, 0\)"):
        CARTExtractor(model).fit(X)


# --- one score for two classes ---


def test_threshold_turns_scores_into_labels():
    model = LogisticRegression(max_iter=1000).fit(X, y == 2)
    odds = CallableClassifier(model.decision_function, classes=["no", "yes"], threshold=0.0)
    share = CallableClassifier(
        lambda rows: model.predict_proba(rows)[:, 1:], classes=["no", "yes"], threshold=0.5
    )
    expected = np.where(model.predict(X), "yes", "no")
    assert (odds.predict(X) == expected).all()
    assert (share.predict(X) == expected).all()
    assert clone(odds).get_params() == odds.get_params()
    for wrong in (None, ["a", "b", "c"]):
        with pytest.raises(ValueError, match=r"threshold=0\.5 requires one score per row and"):
            CallableClassifier(odds.function, classes=wrong, threshold=0.5).predict(X)


# --- commands ---

PROGRAM = """
import csv, sys
for row in csv.DictReader(sys.stdin):
    if row["wide or not"] == "":
        print("unknown")
    else:
        print("wide" if float(row["wide or not"]) > 3 else "slim")
"""


def command(program):
    return CommandFunction([sys.executable, "-c", program])


def test_command_function_queries_a_program():
    rows = X[["sepal width (cm)"]].set_axis(["wide or not"], axis=1)
    black_box = CallableClassifier(command(PROGRAM), classes=["slim", "unknown", "wide"])
    expected = np.where(rows["wide or not"] > 3, "wide", "slim")
    assert (black_box.predict(rows) == expected).all()
    extractor = CARTExtractor(black_box, random_state=0).fit(rows)
    assert (extractor.predict(rows) == expected).all()
    assert len(extractor.rules_) == 2
    gaps = rows.where(rows > 2.5)
    assert set(black_box.predict(gaps)) == {"slim", "unknown", "wide"}
    second_data = pickle.loads(pickle.dumps(clone(black_box)))
    assert (second_data.predict(rows) == expected).all()


def test_command_function_parses_output():
    rows = np.array([[1.0, 2.0], [3.0, 4.5]])
    total = "import sys; [print(sum(map(float, r.split(',')))) for r in [*sys.stdin][1:]]"
    assert CallableRegressor(command(total)).predict(rows).tolist() == [3.0, 7.5]
    header = "print('prediction'); print(1); print(2)"
    assert command(header)(rows).tolist() == [1, 2]
    assert command("print(1.5); print(2)")(rows).tolist() == [1.5, 2.0]
    assert CommandFunction(f"{sys.executable} -c 'print(1); print(2)'")(rows).tolist() == [1, 2]


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(["yes" if row[0] > 5.5 else "no" for row in rows]).encode())

    def log_message(self, *_):
        pass


def test_black_box_behind_http_works_as_in_guide():
    """The code of the guide queries a running service."""
    page = (Path(__file__).parents[2] / "docs" / "guide" / "python.md").read_text(encoding="utf-8")
    source = page[page.index("def over_http") : page.index("service = ")]
    with ThreadingHTTPServer(("localhost", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = {"json": json, "np": np, "urllib": urllib}
        exec(source.replace(":8000", f":{server.server_port}"), there)
        service = CallableClassifier(there["over_http"], classes=["no", "yes"])
        extractor = CARTExtractor(service, random_state=0).fit(X)
        server.shutdown()
    assert extractor.predict(X).tolist() == ["yes" if v > 5.5 else "no" for v in X.iloc[:, 0]]


def test_command_function_accepts_polars_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"wide or not": [1.0, 4.0, None]})
    assert command(PROGRAM)(frame).tolist() == ["slim", "wide", "unknown"]
    with pytest.raises(ValueError, match=r"failed: RuntimeError: no\nIt also fails"):
        Oracle(CallableClassifier(refuse)).query(frame)


def refuse(rows):
    raise RuntimeError("no")


def test_command_function_keeps_texts_that_look_like_numbers():
    rows = np.zeros((2, 1))
    for labels in (["01", "02", "unknown"], ["1", "10", "nan"]):
        black_box = CallableClassifier(command(f"print(*{labels[:2]}, sep='\\n')"), classes=labels)
        assert black_box.predict(rows).tolist() == labels[:2]
    scores = command("print(0.2); print(0.7)")
    black_box = CallableClassifier(scores, classes=["no", "yes"], threshold=0.5)
    assert black_box.predict(rows).tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("row,prediction\n0,1.5\n1,2.5\n2,3.5", r"Line 1 .* has 2 columns \(row,prediction\)"),
        ("1\n2,5\n3", r"Line 2 .* has 2 columns \(2,5\)"),
        ("prediction\na\n\nb", "Line 3 .* has no prediction"),
    ],
)
def test_command_function_rejects_lines_without_one_prediction(output, message):
    rows = np.zeros((3, 1))
    with pytest.raises(ValueError, match=message):
        command(f"print({output!r})")(rows)
    assert command("print('1\\n2\\n3\\n')")(rows).tolist() == [1, 2, 3]


def test_command_function_reports_failures():
    rows = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"1 lines for 3 rows"):
        command("print(1)")(rows)
    with pytest.raises(ValueError, match=r"failed with status 1: RuntimeError: no model"):
        command("raise RuntimeError('no model')")(rows)
    with pytest.raises(ValueError, match=r"'no-such-program' cannot be run"):
        CommandFunction("no-such-program")(rows)
    slow = CommandFunction([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
    with pytest.raises(ValueError, match=r"no predictions for 3 rows within 0\.2 seconds\. Raise"):
        slow(rows)


# --- black boxes without support for missing values ---


def test_error_on_missing_values_names_the_remedy():
    lacking = X.where(X != 5.1)
    message = (
        r"(?s)^The black box LogisticRegression failed: ValueError: Input X contains NaN.*without "
        r"missing values \(now in 'sepal length \(cm\)', 'petal length \(cm\)'\)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        fit_black_box(LogisticRegression(max_iter=1000), lacking, y)
    assert "make_pipeline(SimpleImputer(), LogisticRegression(...))" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    with pytest.raises(ValueError, match=message):
        Oracle(FrozenEstimator(model)).query(lacking)
    with pytest.raises(ValueError, match=r"\(now in 'x0', 'x2'\)"):
        Oracle(KNeighborsClassifier().fit(X.to_numpy(), y)).query(lacking.to_numpy())


def test_refusal_blames_missing_values_only_if_they_matter():
    text_rows = pd.DataFrame({"a": ["x", "y", "x"], "b": [1.0, np.nan, 2.0]})
    model = DecisionTreeClassifier().fit(np.zeros((2, 2)), [0, 1])
    message = r"^The black box DecisionTreeClassifier failed: ValueError: could not convert string"
    for query in (
        lambda: Oracle(FrozenEstimator(model), like=text_rows).query(text_rows),
        lambda: fit_black_box(DecisionTreeClassifier(), text_rows, [0, 1, 0]),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            query()
        assert "so they are not the cause" in str(caught.value)
        assert "SimpleImputer" not in str(caught.value)


class Unclonable(DecisionTreeClassifier):
    """A classifier whose constructor changes a parameter, as CatBoost's does."""

    def __init__(self, columns=()):
        super().__init__()
        self.columns = list(columns)


@pytest.mark.parametrize("make", [CARTExtractor, ExtractorSearchCV])
def test_fit_names_cloning_as_the_cause(make):
    message = r"^estimator cannot be cloned \(Cannot clone object.*pass as_black_box\(model\)"
    with pytest.raises(ValueError, match=message):
        make(Unclonable(["c"])).fit(X.where(X != 5.1), y)
    model = as_black_box(Unclonable(["c"]).fit(X, y))
    assert len(CARTExtractor(model).fit(X.where(X != 5.1), y).rules_) > 1


def test_fit_black_box_keeps_unrelated_errors():
    with pytest.raises(ValueError, match=r"^could not convert string to float"):
        fit_black_box(LogisticRegression(), pd.DataFrame({"a": ["x", "y"]}), [0, 1])


def test_command_labels_match_declared_classes():
    rows = np.array([[1.0], [3.0]])
    words = command("print(False); print(True)")
    assert CallableClassifier(words, classes=[False, True]).predict(rows).tolist() == [False, True]
    assert CallableClassifier(words).predict(rows).tolist() == ["False", "True"]
    assert CallableClassifier(words, classes=["False", "True"]).predict(rows)[0] == "False"
