"""The table of extractors."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skescore import extractors
from skescore.extractors import BaseExtractor, CARTExtractor, GridExExtractor
from skescore.registry import EXTRACTORS, extractor_class, registered_name


@pytest.mark.parametrize("name", EXTRACTORS)
def test_every_entry_leads_to_an_extractor_that_does_its_tasks(name: str) -> None:
    kind = extractor_class(name)
    assert issubclass(kind, BaseExtractor)
    assert EXTRACTORS[name].tasks == kind.tasks
    assert EXTRACTORS[name].summary


def test_every_public_extractor_is_registered_once() -> None:
    public = {
        value
        for name in extractors.__all__
        if inspect.isclass(value := getattr(extractors, name))
        and issubclass(value, BaseExtractor)
        and not inspect.isabstract(value)
    }
    registered = [extractor_class(name) for name in EXTRACTORS]
    assert set(registered) == public
    assert len(registered) == len(public)


@pytest.mark.parametrize("name", EXTRACTORS)
@pytest.mark.parametrize("model", [LogisticRegression(), LinearRegression()])
def test_every_extractor_is_made_of_a_black_box_alone(name: str, model: Any) -> None:
    extractor = extractor_class(name)(model)
    assert extractor.get_params()["estimator"] is model
    assert registered_name(extractor) == name


def test_an_extractor_of_ones_own_has_no_registered_name() -> None:
    class Other(CARTExtractor):
        pass

    impostor = type("CARTExtractor", (GridExExtractor,), {})
    assert registered_name(Other(LogisticRegression())) is None
    assert registered_name(impostor(LogisticRegression())) is None
    assert registered_name(LogisticRegression()) is None


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no extractor 'gridx'\. Did you mean 'gridex'"):
        extractor_class("gridx")
    with pytest.raises(ValueError, match="Known: cart, cream, exact, gridex"):
        extractor_class("something else")
