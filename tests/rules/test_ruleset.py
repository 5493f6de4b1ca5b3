"""Construction, comparison and properties of rule sets; `test_matching` covers matching."""

from __future__ import annotations

import copy
import math
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest

from skescore.rules import (
    AtLeast,
    BoxTable,
    Conclusions,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

NAN = math.nan
NAMES = ["length", "width"]


def by_rules(**changes):
    settings = {
        "rules": [
            Rule([Interval(0, upper=1)], "a", RuleStatistics(4, (3, 1, 0))),
            Rule([Interval(0, 1, 2), Interval(1, lower=5)], "b", RuleStatistics(2, (0, 2, 0))),
        ],
        "feature_names": NAMES,
        "task": "classification",
        "classes": ["a", "b", "c"],
        "domain": Domain((0, 0), (4, 10)),
        "fallback": Fallback("c", "default", (3, 3, 4)),
    }
    return RuleSet(**(settings | changes))


def by_boxes(**changes):
    inf = math.inf
    settings = {
        "classes": np.array(["a", "b", "c"]),
        "domain": Domain((0, 0), (4, 10)),
        "fallback": Fallback("c", "default", (3, 3, 4)),
    }
    return RuleSet.from_boxes(
        BoxTable(
            np.array([[-inf, -inf], [1, 5]]),
            np.array([[1, inf], [2, inf]]),
            np.array([[True, True], [False, False]]),
            np.ones((2, 2)),
        ),
        Conclusions(
            np.array([0, 1]), n_rows=np.array([4, 2]), class_counts=np.array([[3, 1, 0], [0, 2, 0]])
        ),
        np.array(NAMES),
        task="classification",
        **(settings | changes),
    )


def regression(**changes):
    settings = {
        "rules": [
            Rule([Interval(0, upper=1)], 1.5, RuleStatistics(3, mean=1.5, standard_deviation=0.5)),
            Rule([Interval(0, 1, 3)], LinearOutput(1, [(0, 2), (1, -1)])),
        ],
        "feature_names": NAMES,
        "task": "regression",
    }
    return RuleSet(**(settings | changes))


MIXED = RuleSet(
    [
        Rule([AtLeast(1, [Interval(0, 1), OneOf(1, [3])])], True),
        Rule([Linear([(0, 1), (1, 1)], 5)], False),
    ],
    NAMES,
    task="classification",
    ordered=False,
    fallback=Fallback(False, "abstain", None, "?"),
)
ALL = {
    "rules": by_rules(),
    "boxes": by_boxes(),
    "regression": regression(),
    "mixed": MIXED,
    "empty": RuleSet([], [], task="regression"),
}
each = pytest.mark.parametrize("ruleset", ALL.values(), ids=ALL.keys())


def fill_caches(ruleset):
    """Fill all caches of a rule set and return it."""
    X = np.ones((1, ruleset.n_features))
    ruleset.assign(X)
    ruleset.match(X)
    if len(ruleset) and ruleset.classes is not None:
        ruleset.predict_proba(X)
    return hash(ruleset), str(ruleset), ruleset.n_conditions, ruleset.n_literals, ruleset.boxes


# --- values that do not change ---------------------------------------------------------------


@each
def test_ruleset_is_immutable(ruleset):
    for name in ("rules", "feature_names", "task", "classes", "_rules", "boxes", "note"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(ruleset, name, ())
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(ruleset, name)
    with pytest.raises(TypeError):
        ruleset[0] = Rule([], 1)


@each
@pytest.mark.parametrize(
    "twin",
    [
        lambda r: pickle.loads(pickle.dumps(r)),
        copy.copy,
        copy.deepcopy,
        lambda r: r.replace(),
        lambda r: r.replace(rules=iter(r.rules)),
        lambda r: RuleSet.from_json(r.to_json()),
        lambda r: r[:],
    ],
    ids=["pickle", "copy", "deepcopy", "replace", "rules", "json", "slice"],
)
def test_ruleset_equals_its_copies(ruleset, twin):
    before = twin(ruleset)
    fill_caches(ruleset)
    after = twin(ruleset)
    for container in (before, after):
        assert container == ruleset
        assert hash(container) == hash(ruleset)
        assert fill_caches(container)[:-1] == fill_caches(ruleset)[:-1]
        assert str(container) == str(ruleset)


@each
def test_ruleset_pickle_omits_caches(ruleset):
    # Otherwise joblib.Memory would recompute after each prediction.
    fresh = pickle.loads(pickle.dumps(ruleset))
    stored, hashed = pickle.dumps(fresh), joblib.hash(fresh)
    fill_caches(fresh)
    assert len(pickle.dumps(fresh)) == len(stored)
    assert joblib.hash(fresh) == hashed
    assert joblib.hash(pickle.loads(pickle.dumps(fresh))) == hashed


def test_ruleset_unpickled_arrays_are_read_only():
    fresh = pickle.loads(pickle.dumps(by_boxes()))
    with pytest.raises(ValueError, match="read-only"):
        fresh.boxes.lower[1, 0] = -5
    with pytest.raises(ValueError, match="read-only"):
        fresh.conclusions.outputs[0] = 1


def test_ruleset_from_boxes_equals_ruleset_of_rules():
    assert by_boxes() == by_rules()
    assert hash(by_boxes()) == hash(by_rules())
    assert {by_boxes(): "found"}[by_rules()] == "found"
    assert len({by_boxes(), by_rules(), by_boxes()[:]}) == 1
    X = np.array([[0, 0], [1, 5], [1.5, 6], [1.5, 5], [9, 9], [NAN, NAN]])
    assert by_boxes().predict(X).tolist() == by_rules().predict(X).tolist()
    assert by_boxes().predict_proba(X).tolist() == by_rules().predict_proba(X).tolist()
    assert by_boxes().to_json() == by_rules().to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"rules": by_rules().rules[:1]},
        {"rules": by_rules().rules[::-1]},
        {"feature_names": ["length", "depth"]},
        {"classes": ["a", "c", "b"]},
        {"domain": None},
        {"domain": Domain((0, 0), (4, 11))},
        {"ordered": False},
        {"disjoint": True},
        {"fallback": None},
        {"fallback": Fallback("c", "nearest", (3, 3, 4))},
    ],
)
def test_ruleset_equality_compares_all_parts(change):
    for ruleset in (by_rules(), by_boxes()):
        changed_set = ruleset.replace(**change)
        assert changed_set != by_rules()
        assert changed_set == by_rules(**change)
        assert ruleset == by_rules()


def test_ruleset_differs_from_other_types():
    assert by_rules() != by_rules().rules
    assert by_rules() != "rules"
    assert (by_rules() == "rules") is False


def test_ruleset_replace_keeps_arrays():
    boxes = by_boxes()
    assert boxes.replace(fallback=None).boxes is boxes.boxes
    with pytest.raises(TypeError, match="color"):
        boxes.replace(color="red")
    # Other classes change the codes of the outputs, not their labels.
    reordered = boxes.replace(classes=["c", "b", "a"], rules=[Rule([], "a")], fallback=None)
    assert reordered.predict([[0, 0]]).tolist() == ["a"]


# --- a sequence of rules ---------------------------------------------------------------------


@each
def test_ruleset_is_a_sequence(ruleset):
    rules = list(ruleset)
    assert len(rules) == len(ruleset)
    assert [ruleset[i] for i in range(len(ruleset))] == rules
    assert list(reversed(ruleset)) == rules[::-1]
    assert all(rule in ruleset for rule in rules)
    assert Rule([], "unknown") not in ruleset
    with pytest.raises(IndexError):
        ruleset[len(ruleset)]
    part = ruleset[-1:]
    assert isinstance(part, RuleSet)
    assert part.rules == ruleset.rules[-1:]
    assert part.classes == ruleset.classes
    assert part.fallback == ruleset.fallback
    assert part.domain == ruleset.domain
    assert ruleset[::-1].rules == ruleset.rules[::-1]


def test_ruleset_counts_conditions_and_terms():
    ruleset = by_boxes()
    assert (len(ruleset), ruleset.n_conditions, ruleset.n_literals) == (2, 3, 4)
    assert ruleset.n_terms == sum(rule.n_terms for rule in ruleset) >= 4
    assert ruleset.n_features == 2
    assert ruleset.boxes_only
    assert (len(MIXED), MIXED.n_conditions, MIXED.n_literals) == (2, 2, 4)
    assert not MIXED.boxes_only
    empty = ALL["empty"]
    assert (len(empty), empty.n_conditions, empty.n_literals, empty.n_features) == (0, 0, 0, 0)


def test_ruleset_derives_classes_from_outputs():
    def classes(*outputs, fallback=None):
        rules = [Rule([], output) for output in outputs]
        return RuleSet(rules, ["x"], task="classification", fallback=fallback).classes

    assert classes("b", "a", "b") == ("a", "b")
    assert classes(10, 9, 1.5) == (1.5, 9, 10)
    assert classes(True, False) == (False, True)
    assert classes("1", 2, "b", -1) == (-1, 2, "1", "b")
    assert classes("b", fallback=Fallback("a")) == ("a", "b")
    assert classes(fallback=Fallback("a")) == ("a",)
    assert classes() == ()
    assert regression().classes is None


# --- invalid rule sets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"rules": ["x0 > 1"]}, TypeError, "rules must hold Rule objects, got str.*as_ruleset"),
        ({"feature_names": "ab"}, TypeError, "feature_names must be a sequence of names, got 'ab'"),
        ({"feature_names": ["a", "a"]}, ValueError, r"must differ from each other, got \['a'\]"),
        (
            {"feature_names": ["a"], "domain": None},
            ValueError,
            "Rule 2 uses feature 1, but there are only 1 feature names: a",
        ),
        ({"task": "ranking"}, ValueError, "'classification', 'regression', got 'ranking'"),
        ({"classes": "abc"}, TypeError, "classes must be a sequence of labels, got 'abc'"),
        ({"classes": ["a", "b", "a"]}, ValueError, "classes must differ from each other"),
        (
            {"classes": ["a", "c"], "rules": [Rule([], "a"), Rule([], "b")], "fallback": None},
            ValueError,
            "Rule 2 concludes 'b', which is not among .*'a', 'c'",
        ),
        ({"classes": ["a", "b", None]}, TypeError, "classes must be a str, int, float or bool"),
        (
            {"classes": ["a", "b", "c", "d"], "fallback": None},
            ValueError,
            "Rule 1 has 3 class_counts for 4 classes",
        ),
        ({"rules": [Rule([], LinearOutput(1))]}, ValueError, "Rule 1 concludes LinearOutput"),
        (
            {"rules": [Rule([], LinearOutput(1))], "classes": None, "fallback": None},
            ValueError,
            "Rule 1 concludes",
        ),
        ({"domain": Domain((0,), (1,))}, ValueError, "domain has 1 features, feature_names has 2"),
        ({"ordered": "no"}, TypeError, "ordered must be True or False, got 'no'"),
        ({"fallback": "a"}, TypeError, "fallback must be a Fallback or None, got 'a'"),
        ({"fallback": "a", "classes": None}, TypeError, "fallback must be a Fallback or None"),
        ({"domain": ((0, 0), (1, 1))}, TypeError, "domain must be a Domain or None"),
        ({"disjoint": 1}, TypeError, "disjoint must be True or False, got 1"),
        ({"fallback": Fallback("z")}, ValueError, "fallback predicts 'z', which is not among"),
        ({"task": "regression"}, ValueError, "pass classes=None for regression"),
        (
            {"task": "regression", "classes": None},
            ValueError,
            "must predict a number in regression, got 'c'",
        ),
        (
            {"task": "regression", "classes": None, "fallback": None},
            ValueError,
            "Rule 1 of a regression has the output 'a'",
        ),
    ],
)
def test_ruleset_rejects_invalid_parameters(change, error, text):
    with pytest.raises(error, match=text):
        by_rules(**change)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule([], True), "Rule 1 of a regression has the output True"),
        (Rule([AtLeast(1, [Interval(2, 1)])], 1.0), "Rule 1 uses feature 2"),
        (Rule([Linear([(3, 1)], 1)], 1.0), "Rule 1 uses feature 3"),
        (Rule([], LinearOutput(0, [(2, 1)])), "Rule 1 uses feature 2"),
    ],
)
def test_ruleset_rejects_invalid_regression_rules(rule, text):
    with pytest.raises(ValueError, match=text):
        regression(rules=[rule])


def test_from_boxes_rejects_unfitting_arrays():
    boxes, conclusions = by_boxes().boxes, by_boxes().conclusions

    def make(b=boxes, c=conclusions, names=NAMES, **settings):
        settings = {"task": "classification", "classes": ["a", "b", "c"]} | settings
        return RuleSet.from_boxes(b, c, names, **settings)

    assert make().rules == by_rules().rules
    with pytest.raises(ValueError, match="boxes has 2 features, feature_names has 3"):
        make(names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"outputs must have the shape \(1,\)"):
        make(boxes.take(slice(1)))
    with pytest.raises(ValueError, match=r"class_counts must have the shape \(2, 2\)"):
        make(classes=["a", "b"])
    with pytest.raises(TypeError, match="classes must be a sequence of labels, got None"):
        make(classes=None)
    with pytest.raises(ValueError, match="'classification', 'regression'"):
        make(task="?")
    line = Conclusions(np.array([0, NAN]), linear={1: LinearOutput(0, [(2, 1)])})
    with pytest.raises(ValueError, match="linear output uses feature 2, but there are only 2"):
        make(c=line, task="regression", classes=None)


# --- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (("a", "long name", "c"), "U"),
        ((0, 1, 2), "i"),
        ((0.5, 1.5, 2.5), "f"),
        ((True, False), "b"),
        ((2, "a", True), "O"),
    ],
)
@pytest.mark.parametrize("policy", ["default", "nearest"])
def test_predict_keeps_types_of_labels(classes, kind, policy):
    ruleset = RuleSet(
        [Rule([Interval(0, upper=0)], classes[0]), Rule([Interval(0, 0, 1)], classes[1])],
        ["x"],
        task="classification",
        classes=classes,
        fallback=Fallback(classes[-1], policy),
    )
    predictions = ruleset.predict([[-1], [0.5], [7], [NAN]])
    last = [classes[1], classes[0]] if policy == "nearest" else [classes[-1]] * 2
    assert predictions.tolist() == [classes[0], classes[1], *last]
    assert predictions.dtype.kind == kind
    assert ruleset.predict(np.zeros((0, 1))).dtype.kind == kind
    if kind == "O":
        assert [type(v) for v in predictions[:2]] == [type(v) for v in classes[:2]]


@pytest.mark.parametrize(
    ("classes", "label", "answer", "kind"),
    [
        (("a", "b"), None, "no rule", "U"),
        (("a", "b"), "a rather long label", "a rather long label", "U"),
        ((0, 1), None, -1, "i"),
        ((0, 1), 99, 99, "i"),
        ((0, 1), "none", "none", "O"),
        ((0.5, 1.5), None, -1.0, "f"),
        ((True, False), "none", "none", "O"),
        ((True, False), -1, -1, "O"),
        ((3, "a"), None, -1, "O"),
    ],
)
def test_predict_abstains_where_uncovered(classes, label, answer, kind):
    ruleset = RuleSet(
        [Rule([Interval(0, upper=0)], classes[0])],
        ["x"],
        task="classification",
        classes=classes,
        fallback=Fallback(classes[1], "abstain", None, label),
    )
    predictions = ruleset.predict([[-1], [7]])
    assert predictions.tolist() == [classes[0], answer]
    assert predictions.dtype.kind == kind
    assert (
        ruleset.predict([[-1]]).dtype.kind
        == ruleset.replace(fallback=None).predict([[-1]]).dtype.kind
    )
    assert ruleset.predict_proba([[-1], [7]]).tolist() == [[1, 0], [0.5, 0.5]]


def test_predict_needs_free_label_to_abstain():
    def make(classes, label=None):
        return RuleSet(
            [Rule([Interval(0, upper=0)], classes[0])],
            ["x"],
            task="classification",
            classes=classes,
            fallback=Fallback(classes[0], "abstain", None, label),
        )

    assert make((True, False)).predict([[-1]]).tolist() == [True]
    with pytest.raises(ValueError, match="no label left besides True and False"):
        make((True, False)).predict([[7]])
    with pytest.raises(ValueError, match="would predict -1, which is one of the classes"):
        make((-1, 1)).predict([[7]])
    with pytest.raises(ValueError, match="abstain_label must not be one of the classes, got 1"):
        make((-1, 1), label=1)


def test_predict_returns_floats_in_regression():
    X = [[0.5, 9.0], [2.0, 1.0], [3.0, NAN], [9.0, 0.0]]
    for fallback, last in [
        (Fallback(-7), -7.0),
        (Fallback(-7, "nearest"), 19.0),
        (Fallback(-7, "abstain"), NAN),
    ]:
        predictions = regression(fallback=fallback).predict(X)
        assert predictions.dtype == float
        assert np.array_equal(predictions, [1.5, 4.0, NAN, last], equal_nan=True)
    integers = RuleSet([Rule([], 3)], ["x"], task="regression")
    assert integers.predict([[1.0]]).dtype == float
    with pytest.raises(AttributeError, match="predict_proba needs rules for classification"):
        integers.predict_proba([[1.0]])


def test_predict_evaluates_linear_outputs_of_arrays():
    outputs = np.array([1.5, NAN])
    ruleset = RuleSet.from_boxes(
        regression().boxes,
        Conclusions(outputs, linear={1: LinearOutput(1, [(0, 2), (1, -1)])}),
        NAMES,
        task="regression",
    )
    assert ruleset.predict([[2.0, 1.0], [0.0, 0.0], [3.0, 0.5]]).tolist() == [4.0, 1.5, 6.5]
    assert ruleset.predict(np.array([[2, 1]], dtype=np.uint8)).tolist() == [4.0]


def test_predict_rejects_uncovered_rows():
    for ruleset in (by_rules(fallback=None), by_boxes(fallback=None)):
        assert ruleset.predict([[0.0, 0.0]]).tolist() == ["a"]
        for method in (ruleset.predict, ruleset.predict_proba):
            with pytest.raises(
                ValueError,
                match=r"No rule holds for 1 row and .*no fallback\. Use covers\(X\) .*"
                r"ruleset\.replace\(fallback=Fallback\(output\)\)",
            ):
                method([[0.0, 0.0], [9.0, 9.0]])
            with pytest.raises(ValueError, match="No rule holds for 2 rows and"):
                method([[NAN, 0.0], [9.0, 9.0]])
    with pytest.raises(ValueError, match="No rule holds for 1 row"):
        regression().predict([[9.0, 9.0]])


def test_predict_uncovered_rows_of_64_rules():
    # As many rules as bits of a word: the number of the first rule is then that of rules.
    rules = [Rule([Interval(0, i, i + 1)], float(i)) for i in range(64)]
    ruleset = RuleSet(rules, ["x"], task="regression")
    X = [[-5.0], [0.5], [63.5], [65.0]]
    assert ruleset.replace(fallback=Fallback(-1.0)).predict(X).tolist() == [-1.0, 0.0, 63.0, -1.0]
    with pytest.raises(ValueError, match="No rule holds for 2 rows"):
        ruleset.predict(X)


def test_predict_proba_uses_class_counts():
    X = [[0.0, 0.0], [1.5, 6.0], [9.0, 9.0]]
    expected = [[0.75, 0.25, 0], [0, 1, 0], [0.3, 0.3, 0.4]]
    assert by_rules().predict_proba(X).tolist() == expected
    assert by_boxes().predict_proba(X).tolist() == expected
    sure = by_rules(fallback=Fallback("b"))
    assert sure.predict_proba(X)[2].tolist() == [0, 1, 0]
    nothing = by_rules(fallback=Fallback("b", "default", (0, 0, 0)))
    assert nothing.predict_proba(X)[2].tolist() == [0, 1, 0]
    nearest = by_rules(fallback=Fallback("c", "nearest"))
    assert nearest.predict_proba(X)[2].tolist() == [0, 1, 0]
    counted_nothing = by_rules(rules=[Rule([], "b")])
    assert counted_nothing.predict_proba(X).tolist() == [[0, 1, 0]] * 3


def test_predict_without_rules_uses_fallback():
    for policy in ("default", "nearest"):
        ruleset = RuleSet([], ["x"], task="classification", fallback=Fallback("a", policy))
        assert ruleset.predict([[1], [2]]).tolist() == ["a", "a"]
        assert ruleset.predict_proba([[1]]).tolist() == [[1.0]]
        assert not ruleset.covers([[1]]).any()
    assert RuleSet([], [], task="regression", fallback=Fallback(1)).predict(
        np.zeros((2, 0))
    ).tolist() == [1.0, 1.0]


def test_predict_missing_values_uses_fallback():
    assert by_boxes().predict([[NAN, NAN]]).tolist() == ["c"]
    assert by_boxes().predict(pd.DataFrame([[1.0, NAN]], columns=NAMES)).tolist() == ["a"]


# --- text ------------------------------------------------------------------------------------


def test_ruleset_repr_states_kind_and_rules():
    assert repr(by_rules()).splitlines() == [
        "<RuleSet: 2 ordered rules for classification on 2 features>",
        *str(by_rules()).splitlines(),
    ]
    one = RuleSet([Rule([], 1.0)], ["x"], task="regression", ordered=False)
    assert repr(one).startswith("<RuleSet: 1 unordered rule for regression on 1 feature>\n")


def test_rule_of_set_is_written_with_names_and_order():
    created = [
        Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0))),
        Rule([], "other"),
    ]
    ruleset = RuleSet(
        created, ["petal length (cm)"], task="classification", classes=["setosa", "other"]
    )
    line = "IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]"
    assert str(ruleset[0]) == ruleset.line(0) == line
    assert repr(ruleset[0]) == f"<Rule: {line}>"
    assert [str(rule) for rule in ruleset] == [line, "ELSE other"]
    assert ruleset.line(-1) == "ELSE other"
    with pytest.raises(IndexError):
        ruleset.line(2)
    # The rule is the same; only its text differs.
    assert ruleset[0] == created[0]
    assert hash(ruleset[0]) == hash(created[0])
    assert str(created[0]) == "IF x0 ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]"
    # A pickled rule does not contain its rule set, and other sets print it in their own way.
    assert len(pickle.dumps(ruleset[0])) == len(pickle.dumps(created[0]))
    renamed = ruleset.replace(feature_names=["length"])
    assert str(renamed[0]).startswith("IF length ≤ 2.45")
    assert str(ruleset[0]) == line


def test_predict_returns_nan_for_undefined_linear_outputs():
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], LinearOutput(1.0, [(1, 2.0), (2, -1.0)])),
            Rule([Interval(0, lower=1)], 5.0),
        ],
        ["a", "b", "c"],
        task="regression",
    )
    rows = [[0, 3, 1], [0, np.nan, 1], [2, np.nan, np.nan], [2, np.inf, 0]]
    np.testing.assert_array_equal(rules.predict(rows), [6.0, np.nan, 5.0, 5.0])


def test_with_class_names_renames_classes():
    rules = RuleSet(
        [Rule([Interval(0, upper=30)], 0), Rule([], 1)],
        ["age"],
        task="classification",
        fallback=Fallback(1),
    )
    named = rules.with_class_names(["no", "yes"])
    assert str(named).splitlines() == ["1. IF age ≤ 30 THEN no", "2. ELSE yes"]
    assert named.classes == ("no", "yes")
    assert named.fallback == Fallback("yes")
    assert rules.with_class_names({1: "yes", 0: "no"}) == named
    for wrong, message in [
        (["no"], "one name for each of the 2 classes"),
        ({0: "no"}, "no name for 1"),
        (["no", "no"], "classes must differ"),
    ]:
        with pytest.raises(ValueError, match=message):
            rules.with_class_names(wrong)
    with pytest.raises(ValueError, match="this is a regression"):
        RuleSet([], ["age"], task="regression").with_class_names(["no"])


@pytest.mark.parametrize(
    ("reference", "words"),
    [("black_box", "agree with the model"), ("data", "right (data)"), (None, "of this class")],
)
def test_ruleset_reference_names_counted_labels(reference, words):
    rule = Rule([Interval(0, upper=1)], "a", RuleStatistics(4, (3, 1)))
    rules = RuleSet([rule], ["x"], task="classification", classes=["a", "b"], reference=reference)
    assert str(rules[0]) == f"IF x ≤ 1 THEN a   [4 rows, 75 % {words}]"
    assert RuleSet.from_json(rules.to_json()) == rules
    assert ("reference" in rules.to_json()) == (reference is not None)
    for changed in (rules.simplify(), rules[:1], rules.replace(domain=None), rules.shorten([[0]])):
        assert changed.reference == reference


def test_ruleset_rejects_unknown_reference():
    with pytest.raises(ValueError, match="reference"):
        RuleSet([], ["x"], task="classification", classes=["a", "b"], reference="target")


@pytest.mark.parametrize("voting", [None, "sum"])
def test_predict_error_states_remedy_for_missing_values(voting):
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], 1.0), Rule([Interval(0, lower=1)], 2.0)],
        NAMES,
        task="regression",
        ordered=False,
        voting=voting,
    )
    rows = pd.DataFrame({"length": [0.5, NAN], "width": [NAN, NAN]})
    with pytest.raises(ValueError, match=r"Values of 'length' are missing") as caught:
        rules.predict(rows)
    message = str(caught.value)
    assert "tree of scikit-learn, read it with as_ruleset(tree, missing=True)" in message
    assert "imodels, impute them" in message
