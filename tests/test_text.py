from __future__ import annotations

import pytest

from skescore._text import did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "sentence"),
    [
        ("gridx", ["gridex", "cart"], "Did you mean 'gridex'? Known: cart, gridex."),
        ("GRIDEX", ["gridex", "cart"], "Did you mean 'gridex'? Known: cart, gridex."),
        (" cart ", ["gridex", "cart"], "Did you mean 'cart'? Known: cart, gridex."),
        ("Petal", ["petal", "sepal"], "Did you mean 'petal'? Known: petal, sepal."),
        ("random_forest", {"random-forest"}, "Did you mean 'random-forest'? Known: random-forest."),
        ("age", ["Age"], "Did you mean 'Age'? Known: Age."),
        ("quux", ["gridex", "cart"], "Known: cart, gridex."),
        ("", ["gridex", "cart"], "Known: cart, gridex."),
        (None, ["gridex", "cart"], "Known: cart, gridex."),
        (3, ["gridex", "cart"], "Known: cart, gridex."),
        ("cart", [], "Known: none."),
    ],
)
def test_sentence(name, known, sentence):
    assert did_you_mean(name, known) == sentence


def test_known_names_come_sorted_and_once_whatever_the_iterable():
    assert did_you_mean("?", iter(["b", "a", "b"])) == "Known: a, b."


def test_nearest_of_several_wins():
    assert did_you_mean("gridrex", ["gridex", "gridrex2", "iter"]).startswith(
        "Did you mean 'gridrex2'?"
    )
