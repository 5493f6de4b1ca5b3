from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.cli import COMMANDS, build_parser
from skescore.cli._arguments import (
    check_features,
    integer,
    jobs,
    knowledge_scorer_from,
    names_of,
    number_above,
    scorer_from,
)
from skescore.cli._output import Notes
from skescore.datasets import Dataset


def refused(reader, text):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        reader(text)
    return str(caught.value)


# Numbers and names --------------------------------------------------------------------------------


@given(st.floats(min_value=1e-300, allow_infinity=False, allow_nan=False))
def test_positive_numbers_come_back_exactly(value):
    assert number_above(0)(repr(value)) == value


@pytest.mark.parametrize("text", ["0", "-1", "inf", "-inf", "nan", "", "one", "1,5"])
def test_what_is_no_positive_number_is_refused_with_its_text(text):
    assert refused(number_above(0), text) == f"must be a number above 0, got {text!r}"


@given(st.integers(), st.integers(-5, 5))
def test_integers_are_taken_within_their_bounds_only(value, minimum):
    reader = integer(minimum, 100)
    if minimum <= value <= 100:
        assert reader(str(value)) == value
    else:
        assert refused(reader, str(value)) == (
            f"must be an integer from {minimum} to 100, got {str(value)!r}"
        )


@pytest.mark.parametrize("text", ["1.0", "1e3", "x", "", "nan"])
def test_what_is_no_integer_is_refused(text):
    assert refused(integer(2), text) == f"must be an integer of at least 2, got {text!r}"


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("8", 8), ("-1", -1)])
def test_jobs_are_counted_as_joblib_counts_them(text, value):
    assert jobs(text) == value


@pytest.mark.parametrize("text", ["0", "all", "1.5"])
def test_no_jobs_at_all_are_refused(text):
    assert "at least 1, or -1" in refused(jobs, text)
    assert repr(text) in refused(jobs, text)


def test_names_are_separated_by_commas_and_counted_once():
    read = names_of(("cart", "gridex"), "extractor")
    assert read("gridex, cart,gridex,") == ("gridex", "cart")


@pytest.mark.parametrize("text", ["", " , "])
def test_no_names_are_refused(text):
    assert refused(names_of(("cart",), "extractor"), text) == "needs at least one extractor"


def test_unknown_name_gets_the_nearest_one():
    message = refused(names_of(("cart", "gridex"), "extractor"), "cart,gridx")
    assert message == ("there is no extractor 'gridx'. Did you mean 'gridex'? Known: cart, gridex.")


# Help ---------------------------------------------------------------------------------------------


def commands():
    parser = build_parser()
    (choice,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {"": parser, **choice.choices}


def test_the_commands():
    assert list(commands()) == ["", *COMMANDS]
    assert list(COMMANDS) == [
        "tune", "score", "rules", "import", "report", "bench", "reproduce", "doctor", "completion",
    ]  # fmt: skip


def test_commands_are_listed_alike_whether_they_are_imported_or_not():
    assert build_parser([]).format_help() == build_parser().format_help()


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_examples_and_explains_every_option(name):
    parser = commands()[name]
    text = parser.format_help()
    assert "examples:\n  skescore " in text
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help, action.option_strings
            assert action.help is not argparse.SUPPRESS
            for option in action.option_strings:
                assert option in text


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_that_the_help_promises_are_those_of_the_parser(name):
    parser = commands()[name]
    promised = {
        "trials": 60, "cv": 5, "seed": 0, "n_jobs": 1, "psi": 1, "phi": 1, "rho": 1,
        "scoring": "ice", "black_box": "random-forest", "format": "text",
    }  # fmt: skip
    for action in parser._actions:
        if action.dest in promised:
            assert f"default {promised[action.dest]}" in action.help
            assert action.default == promised[action.dest]


# Scorers ------------------------------------------------------------------------------------------


def options(**changes):
    given = {
        "scoring": "ice", "reference": "data", "psi": 2.0, "phi": 3.0, "rho": 4.0,
        "completeness": "instances",
    }  # fmt: skip
    return argparse.Namespace(**given | changes)


def test_scorer_has_the_weights_of_the_options():
    ice = scorer_from(options())
    assert (ice.name, ice.reference) == ("ice", "data")
    assert (ice.settings["phi"], ice.settings["rho"]) == (3.0, 4.0)
    assert ice.settings["completeness"] == "instances"
    fire = scorer_from(options(scoring="fire", reference="black-box"))
    assert (fire.name, fire.reference, fire.settings["psi"]) == ("neg_fire", "black_box", 2.0)
    q = scorer_from(options(scoring="q"))
    assert (q.name, q.settings["completeness"]) == ("neg_q", "instances")


def test_all_scores_at_once_have_the_same_weights():
    settings = knowledge_scorer_from(options()).settings
    assert settings["fire"]["psi"] == 2.0
    assert (settings["ice"]["phi"], settings["ice"]["rho"]) == (3.0, 4.0)
    assert settings["q"]["completeness"] == settings["ice"]["completeness"] == "instances"


# Features -----------------------------------------------------------------------------------------


def checked(columns, capsys):
    X = pd.DataFrame(columns)
    y = pd.Series(["a", "b"] * (len(X) // 2), name="y")
    notes = Notes()
    check_features(Dataset(X, y, "classification", "data", "data.csv", ""), notes)
    assert capsys.readouterr().err == "".join(f"skescore: note: {text}\n" for text in notes.texts)
    return notes.texts


RANDOM = np.random.default_rng(0)
MEASURED = RANDOM.normal(size=40)


def test_sound_features_need_no_note(capsys):
    counts = RANDOM.poisson(5, size=40)
    fractions = np.arange(40) + 0.5  # in order, but no row numbers
    twice = np.repeat(np.arange(20), 2)
    gap = np.r_[0:39, 40]
    columns = {"m": MEASURED, "c": counts, "f": fractions, "t": twice, "g": gap}
    assert checked(columns, capsys) == []


def test_constant_columns_are_noted_together(capsys):
    (note,) = checked({"m": MEASURED, "one": np.ones(40), "two": np.full(40, 2)}, capsys)
    assert note == "2 columns with a single value, of no use: 'one', 'two'"


def test_nothing_but_constant_columns_is_an_error(capsys):
    with pytest.raises(ValueError, match=r"data: every feature is constant \('one', 'two'\)"):
        checked({"one": np.ones(40), "two": np.full(40, 2)}, capsys)


def test_equal_columns_are_noted_with_the_way_out(capsys):
    columns = {"m": MEASURED, "other": -MEASURED, "my copy": MEASURED.copy()}
    (note,) = checked(columns, capsys)
    assert "'m' and 'my copy' are equal" in note
    assert note.endswith("--drop 'my copy'")


def test_equal_columns_are_found_whatever_their_type_and_sign_of_zero(capsys):
    whole = RANDOM.integers(0, 9, size=40)
    floats = np.where(whole == 0, -0.0, whole)
    (note,) = checked({"whole": whole, "floats": floats}, capsys)
    assert "'whole' and 'floats' are equal" in note


@pytest.mark.parametrize("start", [0, 1, 1000])
@pytest.mark.parametrize("shuffled", [False, True])
def test_row_numbers_are_noted_with_the_way_out(start, shuffled, capsys):
    numbers = np.arange(start, start + 40)
    numbers = RANDOM.permutation(numbers) if shuffled else numbers
    (note,) = checked({"m": MEASURED, "id": numbers}, capsys)
    assert "'id' looks like row numbers" in note
    assert note.endswith("--drop id")


def test_few_rows_can_be_in_a_row_by_chance(capsys):
    assert checked({"m": MEASURED[:8], "level": np.arange(8)}, capsys) == []


def test_quiet_notes_are_kept_but_not_shown(capsys):
    notes = Notes(quiet=True)
    X = pd.DataFrame({"m": MEASURED, "one": 1})
    y = pd.Series(MEASURED, name="y")
    check_features(Dataset(X, y, "regression", "data", "data.csv", ""), notes)
    assert len(notes.texts) == 1
    assert capsys.readouterr().err == ""
