"""Compare certificates with an enumeration of all trees."""

from __future__ import annotations

import json
from html import escape
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import ExtractorSearchCV
from skescore.certificates import Certificate, certify, check_certificate
from skescore.extractors import CARTExtractor, OptimalListExtractor, OptimalTreeExtractor
from skescore.optimal import Cuts, SearchSpace, SolverLimits
from skescore.rules import AtLeast, Fallback, Interval, OneOf, Rule, RuleSet, as_ruleset
from skescore.scorers import (
    SCORE_SPECS,
    ice,
    make_fire_scorer,
    make_ice_scorer,
    make_score_scorer,
    neg_q,
)


@pytest.fixture(scope="module")
def iris() -> Any:
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def extractor(iris: Any) -> CARTExtractor:
    box = RandomForestClassifier(20, random_state=0)
    return CARTExtractor(box, max_leaf_nodes=3, random_state=0).fit(*iris)


@pytest.fixture(scope="module")
def certificate(extractor: CARTExtractor, iris: Any) -> Certificate:
    return certify(
        extractor,
        iris[0],
        space=SearchSpace(4),
        kinds=["tree"],
        limits=SolverLimits(time_limit=None),
    )


def partitions(splits: np.ndarray, rows: tuple[int, ...], leaves: int) -> set[Any]:
    """Return the partitions of the rows by trees with at most `size` leaves."""
    held_out_scores: set[Any] = {frozenset([rows])}
    if leaves > 1:
        for test in splits.T:
            yes, no = (tuple(i for i in rows if test[i] == side) for side in (True, False))
            if yes and no:
                for left in range(1, leaves):
                    for a in partitions(splits, yes, left):
                        for b in partitions(splits, no, leaves - left):
                            held_out_scores.add(a | b)
    return held_out_scores


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scorer", [ice, make_fire_scorer(psi=2), neg_q])
def test_interval_contains_score_of_best_tree(seed: int, scorer: Any) -> None:
    """Try all conclusions, as majority classes do not always have the best weighted F1."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (9, 3)).astype(float)
    y = rng.integers(0, 2 + seed % 2, 9)
    y[:2] = [0, 1]
    rules = RuleSet([Rule([], 0)], ["x0", "x1", "x2"], task="classification", classes=[0, 1, 2])
    first_certificate = certify(rules, X, y, space=SearchSpace(3), scoring=scorer, kinds=["tree"])
    spec = scorer.spec
    best = -np.inf
    for parts in partitions(X <= 0.5, tuple(range(9)), 3):
        for labels in product(range(3), repeat=len(parts)):
            predicted = np.empty(9, dtype=int)
            for part, label in zip(parts, labels, strict=True):
                predicted[list(part)] = label
            metric = spec.metric("classification")
            if metric == "accuracy":
                value = np.mean(predicted == y)
            else:
                value = (
                    sum(
                        (y == k).sum()
                        * 2
                        * ((y == k) & (predicted == k)).sum()
                        / ((y == k).sum() + (predicted == k).sum())
                        for k in np.unique(y)
                    )
                    / 9
                )
            value = 1 - value if spec.prediction == "loss" else value
            best = max(best, spec.signed(spec.value(value, len(parts), 1.0, scorer.settings)))
    interval = first_certificate.interval("tree")
    assert spec.signed(interval.incumbent) <= best + 1e-12
    assert best <= spec.signed(interval.bound) + 1e-12
    assert first_certificate.gap() >= best - spec.signed(first_certificate.given_score()) - 1e-12


def test_given_score_equals_scorer(
    certificate: Certificate, extractor: CARTExtractor, iris: Any
) -> None:
    labels = extractor.oracle_.query(iris[0])
    assert certificate.given_score() == pytest.approx(ice(extractor, iris[0], labels))
    assert certificate.with_score("q").given_score() == pytest.approx(
        -neg_q(extractor, iris[0], labels)
    )
    scorer = make_ice_scorer(phi=5, rho=2)
    assert certificate.with_score(phi=5, rho=2).given_score() == pytest.approx(
        scorer(extractor, iris[0], labels)
    )


def test_with_score_equals_new_certificate(
    certificate: Certificate, extractor: CARTExtractor, iris: Any
) -> None:
    for weights in ({"phi": 5.0}, {"rho": 0.1}, {"phi": 10.0, "rho": 0.1}):
        new_certificate = certify(
            extractor,
            iris[0],
            space=SearchSpace(4),
            scoring=make_ice_scorer(**weights),
            kinds=["tree"],
        )
        assert new_certificate.gap() == pytest.approx(certificate.with_score(**weights).gap())
        held_out_scores = certificate.with_score(**weights).best_rules("tree")
        labels = extractor.oracle_.query(iris[0])
        value = make_ice_scorer(**weights, completeness="instances")(
            held_out_scores, iris[0], labels
        )
        assert value == pytest.approx(certificate.with_score(**weights).interval("tree").incumbent)


def test_certificate_json_round_trip(certificate: Certificate) -> None:
    new_certificate = Certificate.from_json(certificate.to_json())
    assert new_certificate.to_json() == certificate.to_json()
    assert new_certificate.to_text() == certificate.to_text()
    assert (
        new_certificate.with_score("fire", psi=3).gap()
        == certificate.with_score("fire", psi=3).gap()
    )


def test_to_text_describes_space(certificate: Certificate) -> None:
    text = str(certificate)
    assert text.startswith("On these 150 rows, against the black box's predictions, 3 rules have")
    assert "decision tree of at most 4 leaves over 8 cuts per feature" in text
    assert "(or with more leaves)" in text  # A larger size bounds the ICE.
    assert text.endswith("The certificate holds for these rows, not for new ones.")
    view = certificate._repr_html_()
    assert all(escape(line) in view for line in text.split("\n"))
    for frontier in certificate.frontiers:
        assert f"{frontier.kind}s: {frontier.loss} on 150 rows" in view
        assert view.count("<tr>") >= len(frontier.sizes)


def test_covers_all_sizes_depends_on_score(extractor: CARTExtractor, iris: Any) -> None:
    first_certificate = certify(extractor, iris[0], kinds=["tree"])
    assert first_certificate.frontiers[0].sizes == (1, 2, 3)
    assert first_certificate.covers_all_sizes("tree")
    assert not certify(extractor, iris[0], scoring="fire", kinds=["tree"]).covers_all_sizes("tree")


def test_certify_accepts_incomplete_rules(iris: Any) -> None:
    X, y = iris
    rules = RuleSet(
        [Rule([Interval(2, upper=2.5)], 0)],
        list(X.columns),
        task="classification",
        classes=[0, 1, 2],
    )
    first_certificate = certify(rules, X, y, space=SearchSpace(2), kinds=["tree"])
    assert first_certificate.given_score() == pytest.approx(ice(rules, X, y))
    assert "compares complete rules" in first_certificate.to_text()
    check = check_certificate(first_certificate.to_json(), X, y)
    assert check.verdict == "confirmed", str(check)
    volume_text = f'"completeness_volume": {first_certificate.given_rules["completeness_volume"]!r}'
    assert volume_text in first_certificate.to_json()
    false = first_certificate.to_json().replace(volume_text, '"completeness_volume": 1.0')
    assert check_certificate(false, X, y).verdict == "rejected"


@pytest.mark.parametrize(
    ("scoring", "score"), [("neg_fire", "fire"), ("q", "q"), ("accuracy", "ice"), (None, "ice")]
)
def test_certify_uses_the_score_of_a_search(scoring: Any, score: str, iris: Any) -> None:
    box = DecisionTreeClassifier(max_depth=2, random_state=0)
    search = ExtractorSearchCV(
        box, extractors=["cart"], scoring=scoring or "ice", n_trials=1, cv=2, random_state=0
    ).fit(*iris)
    searched = search if scoring else search.best_extractor_
    certificate = certify(
        searched,
        *iris,
        space=SearchSpace(2, cuts=2),
        kinds=["tree"],
        limits=SolverLimits(max_nodes=10),
    )
    assert certificate.score == score


@pytest.mark.slow
def test_with_held_out_adds_scores_on_held_out_rows(iris: Any) -> None:
    """Compare with the cross-validation of scikit-learn on the same splits."""
    X, y = iris
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    box = RandomForestClassifier(10, random_state=0)
    search = ExtractorSearchCV(box, extractors=["cart"], n_trials=3, cv=cv, random_state=0)
    search.fit(X, y)
    first_certificate = certify(
        search, space=SearchSpace(3, cuts=3), limits=SolverLimits(max_nodes=100)
    )
    held_out_certificate = first_certificate.with_held_out(
        search, limits=SolverLimits(max_nodes=100)
    )
    held_out_scores = held_out_certificate.held_out
    assert held_out_scores is not None
    kind = max(first_certificate.kinds, key=lambda kind: first_certificate.interval(kind).incumbent)
    best = first_certificate.best_rules(kind)
    assert best is not None
    assert (held_out_scores["kind"], held_out_scores["n_rules"]) == (kind, len(best))
    settings: dict[str, Any] = {"cuts_per_feature": 3, "max_nodes": 100}
    if kind == "tree":
        optimal: Any = OptimalTreeExtractor(box, max_leaf_nodes=len(best), **settings)
    else:
        optimal = OptimalListExtractor(box, max_rules=len(best), **settings)
    for name, extractor in (("best", optimal), ("given", search.best_extractor_)):
        expected = [
            ice(
                clone(extractor).set_params(estimator=clone(box)).fit(X.iloc[train], y.iloc[train]),
                X.iloc[test],
                y.iloc[test],
            )
            for train, test in cv.split(X, y)
        ]
        assert held_out_scores[name] == pytest.approx(expected)  # type: ignore[literal-required]
    assert np.mean(held_out_scores["given"]) == pytest.approx(search.best_score_)
    better = np.mean(held_out_scores["best"]) > np.mean(held_out_scores["given"])
    sentence = held_out_certificate.to_text().split("\n")[-1]
    assert sentence.startswith(f"The search for the best {kind} of at most {len(best)} rules")
    assert sentence.endswith(
        f"the {kind} is better on held-out rows, too."
        if better
        else f"the {kind} is not better on held-out rows."
    )
    assert (
        Certificate.from_json(held_out_certificate.to_json()).to_text()
        == held_out_certificate.to_text()
    )
    check = check_certificate(held_out_certificate.to_json(), X, y)
    assert check.verdict == "confirmed"
    assert check.findings[-1].startswith("The scores on held-out rows are not checked")
    assert held_out_certificate.with_score("ice").held_out == held_out_scores
    assert held_out_certificate.with_score("ice", phi=3).held_out is None


@pytest.mark.parametrize("scoring", ["ice", "fire"])
def test_certify_accepts_regression_rules(scoring: str) -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X.iloc[::4, :4], y.iloc[::4]
    rules = as_ruleset(DecisionTreeRegressor(max_leaf_nodes=3, random_state=0).fit(X, y))
    first_certificate = certify(
        rules, X, y, space=SearchSpace(3, cuts=4), scoring=scoring, kinds=["tree"]
    )
    assert first_certificate.frontiers[0].status == ("optimal",) * 3
    spec = SCORE_SPECS[first_certificate.score]
    own_score, best = first_certificate.given_score(), first_certificate.interval("tree").incumbent
    assert spec.signed(best) >= spec.signed(own_score)
    assert first_certificate.gap() == pytest.approx(abs(best - own_score))
    assert check_certificate(first_certificate.to_json(), X, y).verdict == "confirmed"
    with pytest.raises(ValueError, match=r"Create another certificate with certify\(..., scoring="):
        first_certificate.with_score("fire" if scoring == "ice" else "ice")


def test_certify_weights_equal_repeated_rows(iris: Any) -> None:
    X, y = iris
    X, y = X.iloc[::3], y.iloc[::3]
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    weighted = certify(
        rules, X, y, kinds=["tree"], space=SearchSpace(4, cuts=3), sample_weight=weights
    )
    places = np.repeat(np.arange(len(y)), weights)
    cuts = weighted.frontiers[0].space
    repeated = certify(
        rules,
        X.iloc[places],
        y.iloc[places],
        kinds=["tree"],
        space=SearchSpace(4, cuts=None),
    )
    assert weighted.given_score() == pytest.approx(repeated.given_score())
    assert (weighted.frontiers[0].lower >= repeated.frontiers[0].lower).all()
    assert cuts["cuts"]["n_features"] == 4
    assert check_certificate(weighted.to_json(), X, y, weights).verdict == "confirmed"
    assert check_certificate(weighted.to_json(), X, y).verdict == "rejected"


def test_certify_accepts_categories_and_missing_values() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(40) < 0.3, np.nan, rng.integers(0, 5, 40)),
            "c": np.where(rng.random(40) < 0.2, None, rng.choice(["u", "v", "w"], 40)),
        }
    )
    y = np.where(frame["a"].isna(), "x", np.where(frame["c"] == "u", "y", "z"))
    rules = RuleSet([Rule([], "z")], ["a", "c"], task="classification", classes=["x", "y", "z"])
    first_certificate = certify(rules, frame, y, space=SearchSpace(3), kinds=["tree"])
    assert first_certificate.frontiers[0].upper.tolist()[-1] == 0
    assert check_certificate(first_certificate.to_json(), frame, y).verdict == "confirmed"


def test_certify_without_time_returns_valid_bounds(extractor: CARTExtractor, iris: Any) -> None:
    first_certificate = certify(
        extractor,
        iris[0],
        space=SearchSpace(5),
        kinds=["tree"],
        scoring="fire",
        limits=SolverLimits(time_limit=0),
    )
    full = certify(extractor, iris[0], space=SearchSpace(5), kinds=["tree"], scoring="fire")
    assert first_certificate.interval("tree").bound <= full.interval("tree").bound
    assert first_certificate.interval("tree").incumbent >= full.interval("tree").incumbent
    assert first_certificate.gap() >= full.gap()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": "tree"}, "kinds must be a sequence"),
        ({"kinds": ["forest"]}, "kinds must be one of"),
        ({"scoring": "accuracy"}, "scoring must be one of"),
        ({"scoring": make_ice_scorer(size="conditions")}, "must count rules as size"),
        ({"scoring": make_ice_scorer(performance="balanced_accuracy")}, "cannot be bounded"),
        ({"y": None}, "y must be passed"),
    ],
)
def test_certify_rejects_invalid_parameters(changes: dict[str, Any], message: str) -> None:
    rules = RuleSet([Rule([], 0)], ["x0"], task="classification", classes=[0, 1])
    options: dict[str, Any] = {"X": [[1.0], [2.0]], "y": [0, 1], "kinds": ["tree"]} | changes
    with pytest.raises(ValueError, match=message):
        certify(rules, options.pop("X"), options.pop("y"), **options)


def test_from_json_rejects_other_texts(certificate: Certificate) -> None:
    for text, message in (
        ("{", "must be a certificate in JSON"),
        ('{"format": "x"}', "must be a certificate"),
        ('{"format": "skescore.Certificate", "version": 9}', "version 9"),
        (
            '{"format": "skescore.Certificate", "version": 1, "score": "ice"}',
            "missing or invalid fields: 'frontiers'",
        ),
        (
            '{"format": "skescore.Certificate", "version": 1, "score": ["ice"]}',
            r"has the unknown score \['ice'\]",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Certificate.from_json(text)
    with pytest.raises(ValueError, match="kind must be one of"):
        certificate.interval("list")
    with pytest.raises(ValueError, match="score must be one of"):
        certificate.with_score("f1")


@pytest.mark.parametrize("scoring", ["ice", "neg_fire"])
def test_certify_stops_at_tolerance(scoring: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] * X[:, 1] + rng.normal(0, 0.5, 150) > 0).astype(int)
    rules = RuleSet(
        [Rule([], 1)], [f"x{j}" for j in range(4)], task="classification", classes=[0, 1]
    )
    options: dict[str, Any] = {"scoring": scoring, "kinds": ["list"], "limits": SolverLimits()}
    options |= {"space": SearchSpace(4, max_conditions=1, cuts=5)}
    full_certificate, tolerant_certificate = (
        certify(rules, X, y, **options),
        certify(rules, X, y, **options, tolerance=0.01),
    )
    assert "target" in tolerant_certificate.frontiers[0].status
    assert set(full_certificate.frontiers[0].status) == {"optimal"}
    (held_out_scores, possible), best = (
        tolerant_certificate.interval("list"),
        full_certificate.interval("list"),
    )
    signed = SCORE_SPECS[tolerant_certificate.score].signed
    assert (
        signed(held_out_scores) <= signed(best.incumbent) <= signed(best.bound) <= signed(possible)
    )
    slack = signed(best.bound) - signed(best.incumbent)  # The F1 is bounded by the errors.
    assert signed(possible) - signed(held_out_scores) <= 0.01 + slack + 1e-9
    assert (tolerant_certificate.frontiers[0].lower <= full_certificate.frontiers[0].lower).all()
    assert check_certificate(tolerant_certificate.to_json(), X, y).verdict == "confirmed"


def test_certify_accepts_stated_cuts(extractor: CARTExtractor, iris: Any) -> None:
    X, y = iris
    cuts = Cuts(4, {2: (2.45, 4.75)}, {})
    certificate = certify(extractor, X, y, space=SearchSpace(3, cuts=cuts), kinds=["tree"])
    used = certificate.frontiers[0].space["cuts"]["thresholds"]
    assert {2.45, 4.75} <= set(used["2"])
    n_cuts = sum(map(len, used.values()))
    own_score = {
        (c.feature, b) for r in extractor.rules_ for c in r.intervals for b in (c.lower, c.upper)
    }
    assert n_cuts <= 2 + len(
        {one for one in own_score if np.isfinite(one[1])}
    )  # Cuts of the given rules are added.
    assert f"over {n_cuts} stated cuts" in certificate.to_text()
    assert check_certificate(certificate.to_json(), X, y).verdict == "confirmed"


@pytest.mark.parametrize(
    ("condition", "cuts", "feature"),
    [
        (OneOf(0, ["u", "v"]), 2, "category_sets"),
        (OneOf(0, ["u", "v"], negated=True), None, "category_sets"),
        (AtLeast(1, [Interval(1, lower=16.5)]), 2, "thresholds"),
        (Interval(1, lower=16.5), Cuts(2, {}, {0: ("u",)}), "missing_features"),
    ],
)
def test_certify_adds_all_cuts_of_rules(condition: Any, cuts: Any, feature: str) -> None:
    X = pd.DataFrame({"c": list("uvwx") * 10, "a": [np.nan, *range(1, 40)]})
    rules = RuleSet([Rule([condition], "b"), Rule([], "a")], ["c", "a"], task="classification")
    y = np.where(rules.predict(X) == "a", "b", "a")  # the outputs of the rules are wrong
    certificate = certify(rules, X, y, space=SearchSpace(2, cuts=cuts))
    other_rules = rules.replace(rules=[Rule([condition], "a"), Rule([], "b")])
    gap = ice(other_rules, X, y) - ice(rules, X, y)
    for frontier in certificate.frontiers:
        assert certificate.gap(frontier.kind) == pytest.approx(gap)
        assert frontier.upper[-1] == 0
    text = certificate.to_json()
    result = check_certificate(text, X, y)
    assert result.verdict == "confirmed"
    stated = "stated cuts" if isinstance(cuts, Cuts) else "and those of the given rules"
    assert all(stated in claims for claims in (str(certificate), str(result)))
    data = json.loads(text)
    cut_parts = [one["space"]["cuts"] for one in data["frontiers"]]
    for part in cut_parts:
        part[feature] = [] if feature == "missing_features" else {}
    assert check_certificate(json.dumps(data), X, y).verdict == "rejected"


def test_certify_adds_intervals_of_categories() -> None:
    X = pd.DataFrame({"code": pd.Categorical([0, 1, 2, 3] * 5)})
    rules = RuleSet(
        [Rule([Interval(0, upper=1.5)], "a"), Rule([], "b")], ["code"], task="classification"
    )
    y = np.where(rules.predict(X) == "a", "b", "a")
    certificate = certify(rules, X, y, space=SearchSpace(2))
    assert [one.upper[-1] for one in certificate.frontiers] == [0.0, 0.0]
    assert certificate.frontiers[0].space["cuts"]["category_sets"] == {"0": [[0, 1]]}
    text = certificate.to_json(indent=None)
    assert check_certificate(text, X, y).verdict == "confirmed"
    text = text.replace(', "category_sets": {"0": [[0, 1]]}', "")
    assert check_certificate(text, X, y).verdict == "rejected"


def test_certify_rejects_other_scores_of_uncovered_rows() -> None:
    rules = RuleSet([Rule([Interval(0, upper=2)], "a")], ["x"], task="classification")
    rules = rules.replace(classes=["a", "b"], fallback=Fallback("b"))
    X, y = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), ["a", "b", "a", "b"]
    scorer = make_ice_scorer(uncovered="penalize")
    with pytest.raises(ValueError, match="no given rule holds for 2 of the rows"):
        certify(rules, X, y, scoring=scorer)
    complete = rules.replace(rules=[*rules, Rule([], "b")])
    certificate = certify(complete, X, y, scoring=scorer)
    assert certificate.given_score() == pytest.approx(scorer(complete, X, y))


@pytest.mark.parametrize(
    ("task", "lower", "y"),
    [("classification", 10, ["a", "b", "a", "b"]), ("regression", 3, [0.0, 0.0, 0.0, 1.0])],
)
def test_certify_rejects_undefined_metric(task: str, lower: float, y: list[Any]) -> None:
    classes = ["a", "b"] if task == "classification" else None
    rules = RuleSet(
        [Rule([Interval(0, lower=lower)], y[0])],
        ["x"],
        task=task,
        classes=classes,
        fallback=Fallback(y[0]),
    )
    X = [[1.0], [2.0], [3.0], [4.0]]
    with pytest.raises(ValueError, match="which is undefined"):
        certify(rules, X, y, space=SearchSpace(2), kinds=["tree"])
    if task == "classification":
        certificate = certify(rules, X, y, scoring="fire", space=SearchSpace(2), kinds=["tree"])
        assert check_certificate(certificate.to_json(), X, y).verdict == "confirmed"
        with pytest.raises(ValueError, match="needs the weighted F1"):
            certificate.with_score("ice")


@pytest.mark.parametrize("weights", [None, [0.0, 0.0, 1.0, 0.0]])
def test_certify_one_row_writes_json(weights: Any) -> None:
    rules = RuleSet([Rule([Interval(0, lower=3)], 1.0), Rule([], 0.0)], ["x"], task="regression")
    X, y = [[1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0]
    if weights is None:
        X, y = X[:1], y[:1]
    scorer = make_score_scorer("q", metric="root_mean_squared_error")
    certificate = certify(rules, X, y, scoring=scorer, sample_weight=weights)
    text = certificate.to_json()
    assert Certificate.from_json(text).given_score() == certificate.given_score()
    assert check_certificate(text, X, y, weights).verdict == "confirmed"
    with pytest.raises(ValueError, match="needs the R²"):
        certificate.with_score("ice")
