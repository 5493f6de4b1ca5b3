"""The explainers of the benchmark on Boolean attributions."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore.attribution import Formula
from skescore.reproduce._brex_networks import CAPTUM, KINDS
from skescore.reproduce._shapley import (
    completion_shapley,
    kleene_shapley,
    sampled_shapley,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Maps:
    """Attributions of some rows, and the mean number of different questions asked per row."""

    values: Floats
    queries: float


@dataclass(frozen=True)
class Method:
    """An explainer of the benchmark.

    Parameters
    ----------
    name : str
        What users choose it by.
    label : str
        How tables call it.
    printed : str or None
        The paper's row that it belongs to.
    explain : callable or None
        Gives the attributions of a formula's answers for rows, from a seed; None for a method that
        explains a trained network.
    network : str or None
        Kind of network that is explained.
    package : str or None
        What must be installed; `extra` brings it.
    most : int or None
        Rows that it is run on at most, because it is slow.
    quick : bool
        Whether it is run unless asked for.
    ignores_zero_maps : bool
        Whether rows without any attribution are left out of its mean divergence, as a mean that
        leaves out NaN does.
    """

    name: str
    label: str
    printed: str | None
    explain: Callable[[Formula, NDArray[np.bool_], int], Maps] | None = None
    network: str | None = None
    package: str | None = None
    extra: str = ""
    most: int | None = None
    quick: bool = True
    ignores_zero_maps: bool = False

    @property
    def captum_name(self) -> str:
        """The paper's name of the method that explains a network."""
        assert self.printed is not None
        return self.printed


def _brex(preset: str, **options: Any) -> Callable[[Formula, NDArray[np.bool_], int], Maps]:
    def explain(formula: Formula, X: NDArray[np.bool_], seed: int) -> Maps:
        from skescore.attribution import BReX

        found = BReX(formula, preset=preset, random_state=seed, **options).explain(X.astype(int))
        return Maps(np.asarray(found.values, dtype=float), float(np.mean(found.queries)))

    return explain


def _exact(game: Callable[[Formula, NDArray[np.bool_]], Floats]) -> Callable[..., Maps]:
    def explain(formula: Formula, X: NDArray[np.bool_], seed: int) -> Maps:
        return Maps(game(formula, X), float(1 << formula.arity))

    return explain


def _signed_decisions(formula: Formula, X: NDArray[np.bool_]) -> Floats:
    return np.where(formula.evaluate(X), 1.0, -1.0)


def _sampled(formula: Formula, X: NDArray[np.bool_], seed: int) -> Maps:
    """One random order per row, forwards and backwards: about what B-ReX asks."""
    signs, coded = _signed_decisions(formula, X), np.where(X, 1, -1).astype(np.int8)

    def worth(present: NDArray[np.bool_], rows: NDArray[np.intp]) -> Floats:
        return formula.evaluate_kleene(coded[rows] * present) * signs[rows]

    generator = np.random.default_rng(seed)
    values, queries = sampled_shapley(
        worth, len(X), formula.n_inputs, n_pairs=1, generator=generator
    )
    return Maps(values, float(queries))


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """The shap package draws from NumPy's global generator, which is put back as it was."""
    state = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        with warnings.catch_warnings():
            # Fewer samples than unknowns, as in the paper, and what its own code is told.
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)


def _kernel_shap(samples: int | str) -> Callable[[Formula, NDArray[np.bool_], int], Maps]:
    def explain(formula: Formula, X: NDArray[np.bool_], seed: int) -> Maps:
        shap = import_optional("shap", extra="shap", purpose="Explaining by KernelSHAP")
        asked = 0

        def model(rows: Any) -> Floats:
            nonlocal asked
            asked += len(rows)
            return formula.evaluate_kleene(np.asarray(rows).astype(np.int8)).astype(float)

        with _global_seed(seed):
            explainer = shap.KernelExplainer(model, np.zeros((1, formula.n_inputs)))
            asked = 0
            coded = np.where(X, 1.0, -1.0)
            found = explainer.shap_values(coded, nsamples=samples, l1_reg=False, silent=True)
        signs = _signed_decisions(formula, X)
        return Maps(np.asarray(found, dtype=float) * signs[:, None], asked / len(X))

    return explain


def _network_methods() -> Iterator[Method]:
    for kind in KINDS:
        for printed, name in CAPTUM.items():
            yield Method(
                f"{name}:{kind}", f"captum {name}, {kind} network", printed,
                network=kind, package="captum", extra="captum",
                # One call per row, where the others take all rows at once.
                most=100 if name == "KernelShap" else 1000 if "Shapley" in name else None,
                quick=kind == "three-valued",
            )  # fmt: skip


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("brex-paper", "B-ReX, preset paper", "B-ReX", _brex("paper", masking="kleene")),
        Method(
            "brex-literal", "B-ReX, preset literal", "B-ReX",
            _brex("literal", masking="kleene"), ignores_zero_maps=True,
        ),
        Method(
            "brex-certified", "B-ReX, certified (ours)", "B-ReX",
            _brex("certified", masking="kleene"),
        ),
        Method(
            "brex-patient", "B-ReX, certified, patience 20", "B-ReX",
            _brex("certified", masking="kleene", patience=20, n_iterations=100),
        ),
        Method("shapley-unassigned", "Shapley, exact, Unassigned", "ShapleyValues",
               _exact(kleene_shapley)),
        Method("shapley-completions", "Shapley, exact, completions", "ShapleyValues",
               _exact(completion_shapley)),
        Method("shapley-sampled", "Shapley, one order both ways", "ShapleyValues", _sampled),
        Method(
            "kernel-shap-25", "KernelSHAP (shap), 25 samples", "KernelShap", _kernel_shap(25),
            package="shap", extra="shap", most=100,
        ),
        Method(
            "kernel-shap", "KernelSHAP (shap), its default samples", "KernelShap",
            _kernel_shap("auto"), package="shap", extra="shap", most=40, quick=False,
        ),
        *_network_methods(),
    )
}  # fmt: skip


def missing(methods: Sequence[Method]) -> dict[str, list[Method]]:
    """Methods that cannot run, by the extra that is not installed."""
    result: dict[str, list[Method]] = {}
    for method in methods:
        if method.package and importlib.util.find_spec(method.package) is None:
            result.setdefault(method.extra, []).append(method)
    return result
