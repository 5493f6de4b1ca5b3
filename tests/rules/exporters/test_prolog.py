"""Rules as Prolog, run by the real SWI-Prolog and compared with the rule set on every row."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prolog_cases import LABELS as SPECIAL_LABELS
from prolog_cases import bordering_rows
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore.registry import EXTRACTORS, make_extractor
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

SWIPL = shutil.which("swipl")
if SWIPL is None and "swipl" in os.environ.get("SKESCORE_ENGINES", "").split(","):
    raise RuntimeError("SWI-Prolog is needed (SKESCORE_ENGINES), but swipl is not on the PATH.")
needs_swipl = pytest.mark.skipif(SWIPL is None, reason="swipl (SWI-Prolog) is not on the PATH")

# Results are written as type and character codes, so that quoting does not matter. A second
# result of a query would be written as well.
ASK = """
say(Predict) :- integer(Predict), !, format("i ~w~n", [Predict]).
say(Predict) :- number(Predict), !, format("f ~w~n", [Predict]).
say(Predict) :- atom_codes(Predict, Codes), format("a ~w~n", [Codes]).
ask([Predict]) :- !, say(Predict).
ask(Predicts) :- length(Predicts, Count), format("n ~w~n", [Count]).
main :- forall(row(Values), ( append(Values, [Predict], Arguments),
    Goal =.. [prediction|Arguments], findall(Predict, Goal, Predicts), ask(Predicts) )).
"""


def literal(value):
    """Return a value as a Prolog fact: numbers with all digits, others quoted or missing."""
    if value is None or value != value:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        # SWI-Prolog 9.0 refuses some escapes beyond the basic plane.
        return "'" + "".join(c if c > "\uffff" else f"\\x{ord(c):x}\\" for c in value) + "'"
    if isinstance(value, int | np.integer):
        return str(int(value))
    return "1.0Inf" if value == math.inf else "-1.0Inf" if value == -math.inf else f"{value:.17e}"


def ask(folder, theory, rows, **environment):
    """Return the result of SWI-Prolog for every row; None where the query fails."""
    (folder / "theory.pl").write_text(theory, encoding="utf-8")
    facts = (f"row([{', '.join(map(literal, row))}]).\n" for row in rows)
    (folder / "rows.pl").write_text("".join(facts), encoding="utf-8")
    load = f":- consult('{folder}/theory.pl'), consult('{folder}/rows.pl').\n"
    (folder / "ask.pl").write_text(load + ASK, encoding="utf-8")
    outcome = subprocess.run(
        [SWIPL, "-q", "-g", "main", "-t", "halt", str(folder / "ask.pl")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
    )
    assert outcome.stderr == ""
    terms = {
        "i": int,
        "f": float,
        "a": lambda codes: "".join(chr(int(c)) for c in re.findall(r"\d+", codes)),
        "n": lambda count: None if count == "0" else f"{count} predicts",
    }
    answers = [terms[line[0]](line[2:]) for line in outcome.stdout.splitlines()]
    assert len(answers) == len(rows)
    return answers


def assert_answers_alike(folder, ruleset, X, **arguments):
    """Check that SWI-Prolog predicts every row of X like the rule set, in value and type."""
    got = ask(folder, ruleset.to_prolog(**arguments), X)
    covered = ruleset.covers(X)
    expected = ruleset.predict(X if ruleset.fallback else X[covered]).tolist()
    if not ruleset.fallback:
        it = iter(expected)
        expected = [next(it) if c else None for c in covered]
    truth = {True: "true", False: "false"}
    for row, a, b in zip(X, got, expected, strict=True):
        if isinstance(b, float) and math.isnan(b):
            b = "nan"
        b = truth[b] if isinstance(b, bool) else b
        assert (type(a), a) == (type(b), b), (list(row), a, b)


# --- every kind of condition, output and fallback --------------------------------------------

LABELS = [*SPECIAL_LABELS, "null", "nan"]


@needs_swipl
@pytest.mark.slow
def test_prolog_predicts_hostile_rows(arbitrary, tmp_path):
    X = arbitrary.hostile_rows()
    X = X[~np.isinf(X[["age", "fare (€)"]]).any(axis=1)]  # their sums would raise errors
    for ruleset in arbitrary.hostile_sets():
        expected = arbitrary.answers(ruleset, X)
        rows = X.itertuples(index=False, name=None)
        result = ask(tmp_path, ruleset.to_prolog(missing=["null", "NaN"]), list(rows))
        wrong = [
            (X.iloc[i].to_dict(), a, b)
            for i, (a, b) in enumerate(zip(result, expected, strict=True))
            if a != b
        ]
        assert not wrong, f"{wrong[:3]}\n{ruleset!r}"


@needs_swipl
def test_prolog_matches_every_kind_of_condition(tmp_path):
    rng = np.random.default_rng(0)
    one, half = Interval(0, -1.0, 1e-05, True, False), Interval(1, upper=-0.5, upper_closed=False)
    rules = [
        Rule([one, Interval(2, 1e16, 2e16)], "far"),
        Rule([Interval(0, 0.1 + 0.2, 0.30000000000000010)], "hair"),
        Rule([one, half, OneOf(3, ["red", "it's", 3])], "a"),
        Rule([Linear([(0, 0.1), (1, -0.3), (2, 0.7)], -0.5, 0.4, True, False)], "b"),
        Rule([OneOf(3, ["red", "größer", 2.5], negated=True), half], "c"),
        Rule([AtLeast(2, [one, half, OneOf(4, [True])])], "d"),
        Rule(
            [
                AtLeast(
                    2,
                    [
                        AtLeast(1, [Interval(0, 1), Linear([(1, -1)], upper=0)]),
                        OneOf(3, ["red"], negated=True),
                        Interval(2),
                        OneOf(4, [False], negated=True),
                    ],
                ),
                Interval(1, 1),
            ],
            "e",
        ),
        Rule([OneOf(4, [1, 0])], "f"),
    ]
    ruleset = RuleSet(
        rules, ["a b", "a_b", "", "Output", "日"], task="classification", fallback=Fallback("a")
    )
    X = np.empty((10_000, 5), dtype=object)
    X[:, :3] = bordering_rows(ruleset, rng, len(X))[:, :3]
    X[rng.random(len(X)) < 0.2, 0] = 2
    values = ["red", "größer", "it's", 3, 2.5, "other", None, math.nan, math.inf]
    X[:, 3] = [values[i] for i in rng.integers(len(values), size=len(X))]
    X[:, 4] = [[True, False, None, 1, 0.0, 2][i] for i in rng.integers(6, size=len(X))]
    assert set(ruleset.assign(X)) == set(range(-1, 8))
    assert_answers_alike(tmp_path, ruleset, X)
    assert_answers_alike(tmp_path, ruleset.replace(fallback=None), X[:2000])


@needs_swipl
def test_prolog_keeps_labels_and_values_of_all_kinds(tmp_path):
    labels = [label for label in LABELS if label != "true"]
    rules = [Rule([OneOf(0, [label])], label) for label in labels if label not in ("null", "nan")]
    names = ["f"]
    ruleset = RuleSet(
        rules, names, task="classification", classes=[*labels, "no"], fallback=Fallback("no")
    )
    X = np.array([[*labels, 1, 1.0, None]], dtype=object).T
    X[labels.index("null")] = X[labels.index("nan")] = None
    assert_answers_alike(tmp_path, ruleset, X)
    # Other atoms may represent missing values.
    rules = [Rule([OneOf(0, ["nan"], negated=True)], "x"), Rule([OneOf(0, ["null"])], "y")]
    absent = RuleSet(rules, names, task="classification", fallback=Fallback("x", "abstain"))
    assert ask(tmp_path, absent.to_prolog(missing=["gone"]), [["nan"], ["null"], ["gone"]]) == [
        "no rule",
        "x",
        "no rule",
    ]
    for classes in ([1, 2, 3], [1.5, 2, 3], [True, False], [1, "1", 10**30], ["true", 1]):
        rules = [Rule([Interval(0, i, i + 1)], c) for i, c in enumerate(classes)]
        mixed = RuleSet(rules, names, task="classification", fallback=Fallback(classes[0]))
        assert_answers_alike(tmp_path, mixed, np.array([[0.5], [1.5], [2.5], [9.0], [math.nan]]))


@needs_swipl
@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        (Fallback(2), [1, 2, 2]),
        (Fallback(2, "abstain"), [1, -1, -1]),
        (Fallback(2, "abstain", abstain_label="none"), [1, "none", "none"]),
        (None, [1, None, None]),
    ],
)
def test_prolog_predicts_fallback(tmp_path, fallback, expected):
    rules = [Rule([Interval(0, 0)], 1)]
    ruleset = RuleSet(rules, ["x"], task="classification", classes=[1, 2], fallback=fallback)
    assert ask(tmp_path, ruleset.to_prolog(), [[1.0], [-1.0], [math.nan]]) == expected
    nothing = [expected[1]] * 3
    assert ask(tmp_path, ruleset[:0].to_prolog(), [[1.0], [-1.0], [math.nan]]) == nothing
    always = RuleSet([Rule([], 1)], ["x"], task="classification", classes=[1, 2], fallback=fallback)
    assert ask(tmp_path, always.to_prolog(), [[1.0], [-1.0], [math.nan]]) == [1, 1, 1]


@needs_swipl
def test_prolog_returns_exact_numbers(tmp_path):
    rng = np.random.default_rng(1)
    rules = [
        Rule([Interval(0, upper=-1)], 3),
        Rule([Interval(0, upper=0)], LinearOutput(0.1, [(0, -1 / 3), (1, 1e-7), (2, 2.0)])),
        Rule([Interval(1, upper=0)], LinearOutput(-5.5)),
        Rule([Interval(1, upper=1)], 1e-300),
        Rule([Interval(1, upper=2)], -1e22),
    ]
    ruleset = RuleSet(rules, ["x", "y", "z"], task="regression", fallback=Fallback(7))
    X = bordering_rows(ruleset, rng, 5000)
    assert_answers_alike(tmp_path, ruleset, X)
    assert_answers_alike(tmp_path, ruleset.replace(fallback=Fallback(7, "abstain")), X)
    assert_answers_alike(tmp_path, ruleset.replace(fallback=None), X)


@needs_swipl
def test_prolog_handles_infinite_and_unbound_values(tmp_path):
    rules = [
        Rule([Interval(0, 1e308)], 1),
        Rule([Interval(0, upper=-1e308)], 2),
        Rule([OneOf(1, ["a"], negated=True)], 3),
    ]
    ruleset = RuleSet(rules, ["x", "y"], task="classification", fallback=Fallback(1, "abstain"))
    theory = ruleset.to_prolog()
    rows = [[math.inf, "a"], [-math.inf, "a"], [0.0, "a"], [0.0, "b"]]
    assert ask(tmp_path, theory, rows) == [1, 2, -1, 3]
    # Values that are neither numbers nor atoms, and the float NaN, count as missing.
    theory += 'row([_, _]).\nrow([1.5NaN, 1.5NaN]).\nrow([f(x), [a]]).\nrow([null, "b"]).\n'
    assert ask(tmp_path, theory.replace("row(", "extra("), [[0.0, "a"]]) == [-1]
    extra = theory + ":- initialization(forall(row([A, B]), (prediction(A, B, C), write(C)))).\n"
    (tmp_path / "extra.pl").write_text(extra, encoding="utf-8")
    run = subprocess.run(
        [SWIPL, "-q", "-t", "halt", str(tmp_path / "extra.pl")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout == "-1" * 4


@needs_swipl
def test_prolog_query_for_wrong_label_fails(tmp_path):
    rules = [Rule([Interval(0, 0)], "a"), Rule([Interval(0, -1)], "b")]
    theory = RuleSet(rules, ["x"], task="classification", fallback=Fallback("c")).to_prolog()
    query = "ask(X, A) :- ( prediction(X, A) -> write(yes) ; write(no) ), nl.\n"
    goals = ", ".join(f"ask({x}, {a})" for x in ("1.0", "-0.5", "-9") for a in "abc")
    (tmp_path / "t.pl").write_text(f"{theory}{query}:- initialization(({goals})).\n")
    run = subprocess.run(
        [SWIPL, "-q", "-t", "halt", str(tmp_path / "t.pl")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.split() == ["yes", *["no"] * 3, "yes", *["no"] * 3, "yes"]


@needs_swipl
@pytest.mark.parametrize("disjoint", [False, True])
def test_prolog_predicts_unordered_rules(tmp_path, disjoint):
    rng = np.random.default_rng(2)
    rules = []
    for i in range(40):
        j, low = int(rng.integers(3)), round(float(rng.normal()), 1)
        counts = tuple(rng.integers(0, 4, 3).tolist())
        statistics = RuleStatistics(sum(counts), counts) if i % 5 else None
        rules.append(Rule([Interval(j, low, low + 0.7)], "abc"[i % 3], statistics))
    ruleset = RuleSet(
        rules,
        list("xyz"),
        task="classification",
        ordered=False,
        disjoint=disjoint,
        fallback=Fallback("a", "abstain"),
    )
    assert_answers_alike(tmp_path, ruleset, bordering_rows(ruleset, rng, 3000))


# --- voting rules ----------------------------------------------------------------------------


def random_voters(voting, rng, n_rules=60, rows=True):
    classification = voting in ("votes", "probabilities", "logistic")
    rules = []
    for i in range(n_rules):
        j, low = int(rng.integers(3)), round(float(rng.normal()), 1)
        premise = [Interval(j, low, low + 2)] + [OneOf(3, ["u", "v"], negated=bool(i % 2))] * (
            i % 4 == 0
        )
        weight = float(rng.normal() + 0.3)
        terms = [(1, 0.5), (2, -0.1 * i)]
        if classification:
            statistics = RuleStatistics(9, tuple(rng.integers(0, 4, 3).tolist())) if i % 3 else None
            by_row = LinearOutput(weight, terms) if rows and i % 7 == 0 else weight
            rules.append(Rule(premise, "abc"[i % 3], statistics, by_row))
        else:
            output = LinearOutput(weight, terms) if rows and i % 6 == 0 else float(rng.normal())
            rules.append(Rule(premise, output, None, weight))
    return RuleSet(
        rules,
        list("wxyz"),
        task="classification" if classification else "regression",
        classes=list("abc") if classification else None,
        ordered=False,
        voting=voting,
        fallback=Fallback("b" if classification else 0.5, "default"),
    )


@pytest.mark.slow
@needs_swipl
@pytest.mark.parametrize("voting", ["votes", "probabilities", "logistic", "mean", "sum"])
def test_prolog_predicts_voting_rules(tmp_path, voting):
    rng = np.random.default_rng(3)
    for n_rules, rows in ((60, True), (4, False)):
        ruleset = random_voters(voting, rng, n_rules, rows)
        X = np.empty((3000, 4), dtype=object)
        X[:] = bordering_rows(ruleset, rng, len(X))
        X[:, 3] = [["u", "v", "w", None][i] for i in rng.integers(4, size=len(X))]
        assert_answers_alike(tmp_path, ruleset, X)
        abstain = ruleset.replace(fallback=Fallback(ruleset.fallback.output, "abstain"))
        assert_answers_alike(tmp_path, abstain, X[:500])
        if voting != "mean":
            assert_answers_alike(tmp_path, ruleset.replace(fallback=None), X[:500])
        empty = ruleset.replace(rules=[])
        assert_answers_alike(tmp_path, empty, X[:5])


@needs_swipl
@pytest.mark.parametrize("weights", [(1.0, 2.0, 1.0), (1.0, 1.0, 2.0), (0.0, -1.0, 0.0)])
def test_prolog_breaks_ties_by_order_of_classes(tmp_path, weights):
    rules = [Rule([], c, weight=w) for c, w in zip("cab", weights, strict=True)]
    for classes in ("abc", "cba", "bca"):
        ruleset = RuleSet(
            rules,
            ["x"],
            task="classification",
            classes=list(classes),
            ordered=False,
            voting="votes",
        )
        assert_answers_alike(tmp_path, ruleset, np.zeros((1, 1)))


@needs_swipl
def test_prolog_mean_without_weight_is_fallback(tmp_path):
    rules = [
        Rule([], 5, weight=1),
        Rule([Interval(0, 0)], 9, weight=-1),
        Rule([Interval(0, 1)], LinearOutput(0, [(1, 1)]), weight=3),
    ]
    ruleset = RuleSet(
        rules, ["x", "y"], task="regression", ordered=False, voting="mean", fallback=Fallback(0.5)
    )
    X = np.array([[-1, 0], [0.5, 0], [2, 0.1], [2, math.nan], [math.nan, 1]])
    assert ask(tmp_path, ruleset.to_prolog(), X)[:2] == [5.0, 0.5]
    assert_answers_alike(tmp_path, ruleset, X)


# --- the rules of extractors -----------------------------------------------------------------


@needs_swipl
@pytest.mark.parametrize(("name", "task"), [(n, t) for n, s in EXTRACTORS.items() for t in s.tasks])
def test_prolog_predicts_rules_of_every_extractor(tmp_path, name, task):
    load, forest = (
        (load_iris, RandomForestClassifier)
        if task == "classification"
        else (load_diabetes, RandomForestRegressor)
    )
    X, y = load(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    if task == "classification":
        y = y.map(dict(enumerate(["setosa", "it's", "日本"])))
    black_box = forest(n_estimators=5, max_depth=3, random_state=0)
    extractor = make_extractor(name, black_box)
    if "random_state" in extractor.get_params():
        extractor.set_params(random_state=0)
    ruleset = extractor.fit(X, y).rules_
    if ruleset.fallback is not None and ruleset.fallback.policy == "nearest":
        ruleset = ruleset.replace(fallback=Fallback(ruleset.fallback.output))
    rng = np.random.default_rng(4)
    rows = np.vstack([X.to_numpy(float), bordering_rows(ruleset, rng, 850)])
    assert_answers_alike(tmp_path, ruleset, rows)


@needs_swipl
def test_prolog_predicts_500_rules_on_10_000_rows(tmp_path):
    rng = np.random.default_rng(5)
    shape = (500, 4)
    lower = rng.normal(size=shape) * 2
    free = rng.random(shape) < 0.3
    boxes = BoxTable(
        np.where(free, -np.inf, lower),
        np.where(free, np.inf, lower + 1.5),
        rng.random(shape) < 0.5,
        rng.random(shape) < 0.5,
    )
    conclusions = Conclusions(rng.normal(size=500))
    ruleset = RuleSet.from_boxes(
        boxes, conclusions, list("abcd"), task="regression", fallback=Fallback(0)
    )
    assert_answers_alike(tmp_path, ruleset, bordering_rows(ruleset, rng, 10_000))


# --- arbitrary rule sets and values ----------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(LABELS)
floats = st.floats(allow_nan=False, allow_infinity=False)


@needs_swipl
def test_prolog_accepts_any_text_number_and_name(tmp_path_factory):
    """One process tests all: each text, number and name gets its own rule."""
    strings, numbers, names = set(), set(), set()

    @given(text=texts, number=floats, name=texts)
    def collect(text, number, name):
        strings.add(text)
        numbers.add(number)
        names.add(name)

    collect()
    strings -= {"null", "nan", "true", "false"}
    columns = ["t", "n", *sorted(names - {"t", "n"})[:40]]
    rules = [Rule([OneOf(0, [text])], text) for text in sorted(strings)]
    rules += [Rule([Interval(1, number, number, True, True)], number) for number in sorted(numbers)]
    rules += [Rule([Interval(j, 0)], columns[j]) for j in range(2, len(columns))]
    classes = [*dict.fromkeys(rule.output for rule in rules), "no such"]
    ruleset = RuleSet(
        rules, columns, task="classification", classes=classes, fallback=Fallback("no such")
    )
    rows = []
    for column, values in enumerate([sorted(strings), sorted(numbers), *[[1.0]] * 38]):
        for value in values if column < len(columns) else []:
            row = [None] * len(columns)
            row[column] = value
            rows.append(row)
    X = np.array(rows, dtype=object)
    assert_answers_alike(tmp_path_factory.mktemp("any"), ruleset, X)


# --- layout ----------------------------------------------------------------------------------


def test_prolog_header_names_features_safely():
    names = ["Output", "output", "9 lives", "", "日本", "a\nb :- halt.", "Held1", "Sum", "x0", "X0"]
    ruleset = RuleSet(
        [Rule([OneOf(4, ["b", "a"]), Interval(0, 1)], "yes")],
        names,
        task="classification",
        domain=Domain((0,) * 10, (1, 2, 3, 2, 2, 1, 1, 1, 1, 1), [(4, ["a", "b"])]),
    )
    lines = ruleset.to_prolog().splitlines()
    head = "prediction(Output_2, Output_3, X2_9_lives, X3, X4, A_b_halt, Held1_2, Sum, X0, X0_2, "
    assert lines[1] == f"% {head}Output) takes the features in this order:"
    assert lines[2] == "%   Output_2    number  Output"
    assert lines[6] == "%   X4          value   日本"
    assert lines[7] == '%   A_b_halt    number  "a\\nb :- halt."'
    assert "%   ?- prediction(0.5, 1.0, 1.5, 1.0, a, 0.5, 0.5, 0.5, 0.5, 0.5, Output)." in lines
    code = [line for line in lines if not line.startswith("%")]
    assert all(line.isascii() for line in code)
    assert sum("halt" in line for line in code) == 0


def test_prolog_comments_describe_rules():
    rules = [Rule([Interval(0, 1)], "a\u2028:- halt.", RuleStatistics(2, (1, 1)))]
    ruleset = RuleSet(rules, ["±"], task="classification", classes=["a\u2028:- halt.", "b"])
    assert all(
        line.startswith(("%", "pred", "    ", " ")) or not line
        for line in ruleset.to_prolog().splitlines()
    )
    votes = ruleset.replace(ordered=False, voting="votes")
    assert "all rules that hold vote with their weights." in votes.to_prolog().splitlines()[0]
    assert "[weight 1, 2 rows, 50 % of this class]" in votes.to_prolog()
    two = ruleset.replace(rules=[*rules, Rule([], "b")])
    assert two.to_prolog().startswith(
        "% 2 rules for classification; the first that holds gives the prediction."
    )
    assert "listed in the order in which they are applied" in two.replace(ordered=False).to_prolog()
    # A single rule is not described as the first.
    assert ruleset.to_prolog().startswith("% 1 rule for classification.\n")


def test_prolog_header_transliterates_and_quotes_names():
    ruleset = RuleSet([Rule([Interval(0, 1)], 1.0)], ["Größe é", "  "], task="regression")
    header = ruleset.to_prolog().splitlines()
    assert header[2:4] == ["%   Grosse_e  number  Größe é", '%   X1        number  "  "']


def test_prolog_uses_given_predicate():
    ruleset = RuleSet([Rule([], 1.0)], [], task="regression", ordered=False, voting="mean")
    theory = ruleset.to_prolog(predicate="is_it")
    heads = re.findall(r"^(\w+)\(", theory, re.MULTILINE)
    assert set(heads) == {"is_it", "is_it_rule", "is_it_sum", "is_it_mean"}


def test_prolog_shortens_numbers_with_rows():
    ruleset = RuleSet([Rule([Interval(0, upper=2.449999988079071)], 1)], ["x"], task="regression")
    X = np.array([[1.4], [2.3], [2.6]])
    assert "X =< 2.449999988079071" in ruleset.to_prolog()
    search = re.search(r"X =< (\S+),", ruleset.to_prolog(X=X))
    assert 2.3 <= float(search[1]) < 2.6
    assert len(search[1]) <= 3


def test_prolog_rejects_nearest_fallback():
    nearest = Fallback("b", "nearest")
    ruleset = RuleSet([Rule([Interval(0, 1)], "a")], ["x"], task="classification", fallback=nearest)
    with pytest.raises(ValueError, match=r"policy='nearest'.*replace\(fallback=Fallback\('b'\)\)"):
        ruleset.to_prolog()
    # Without rules, or with one that always holds, no nearest rule is needed.
    assert "prediction(_, b)." in ruleset[:0].to_prolog()
    always = ruleset.replace(rules=[*ruleset.rules, Rule([], "a")])
    assert "otherwise, where" not in always.to_prolog()


@pytest.mark.parametrize("name", ["", "A", "_a", "a-b", "a b", "é", "a\n", "9", "'a'"])
def test_prolog_rejects_invalid_predicate_names(name):
    ruleset = RuleSet([], ["x"], task="regression")
    with pytest.raises(ValueError, match=re.escape(f"got {name!r}")):
        ruleset.to_prolog(predicate=name)


def test_prolog_rejects_unsupported_rules():
    ruleset = RuleSet([], ["x"], task="regression")
    with pytest.raises(TypeError, match="predicate must be a str, got 3"):
        ruleset.to_prolog(predicate=3)
    with pytest.raises(TypeError, match="missing must be a sequence of texts, got 'null'"):
        ruleset.to_prolog(missing="null")
    wide = RuleSet([], [f"x{i}" for i in range(1024)], task="regression")
    with pytest.raises(ValueError, match=r"1024 features.*at most 1024 arguments"):
        wide.to_prolog()
    assert "X1022" in RuleSet([], [f"x{i}" for i in range(1023)], task="regression").to_prolog()
    rules = RuleSet([Rule([], True)], ["x"], task="classification", classes=[True, "true"])
    with pytest.raises(ValueError, match="classes hold both True and the text 'true'"):
        rules.to_prolog()
    values = RuleSet([Rule([OneOf(0, [False, "false"])], 1)], ["x"], task="regression")
    with pytest.raises(ValueError, match="values of feature 'x' hold both False and the text"):
        values.to_prolog()
    missing = RuleSet([Rule([OneOf(0, ["nan", "b"])], 1)], ["x"], task="regression")
    with pytest.raises(ValueError, match="'x' has the value 'nan', which would count as missing"):
        missing.to_prolog()
    known = RuleSet(
        [Rule([OneOf(0, ["b"], negated=True)], 1)],
        ["x"],
        task="regression",
        domain=Domain((0,), (2,), [(0, ["null", "b"])]),
    )
    with pytest.raises(ValueError, match="'x' has the value 'null', which would count as missing"):
        known.to_prolog()
    assert "\\== gone" in known.to_prolog(missing=["gone"])
    surrogate = RuleSet([Rule([], "\ud800")], ["x"], task="classification")
    with pytest.raises(ValueError, match="Prolog cannot hold the text"):
        surrogate.to_prolog()
