"""Explainers of the benchmark on Boolean attributions, and why their figures differ."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore.attribution import BReX, Formula

__all__ = [
    "BREX_METHODS",
    "CAPTUM",
    "KINDS",
    "Method",
    "TrainedNetwork",
    "captum_maps",
    "completion_shapley",
    "kleene_shapley",
    "missing",
    "sampled_shapley",
    "shapley_of_tables",
    "train_network",
]

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


class Maps(NamedTuple):
    """Attributions of some rows, and the mean number of distinct queries per row."""

    values: Floats
    queries: float


@dataclass(frozen=True)
class Method:
    """Explainer of the benchmark."""

    name: str
    #: Name in tables, and the row of the paper.
    label: str
    printed: str
    #: Function of a formula, rows and a seed that returns attributions of the formula's decisions;
    #: None for methods that explain a trained network of the kind `network`.
    explain: Callable[[Formula, Bits, int], Maps] | None = None
    network: str | None = None
    #: Required package, which is also the name of the extra that installs it.
    package: str | None = None
    #: Largest number of rows that a slow method explains; None for all rows.
    max_rows: int | None = None
    #: Whether the method runs by default.
    quick: bool = True
    #: Whether rows without attributions are excluded from the mean divergence, as by `nanmean`.
    ignores_zero_maps: bool = False
    #: Reasons for differences from the paper in Tables 3 and 4, and in the other tables.
    on_divergence: str = ""
    on_top_k: str = ""

    def why_different(self, table: int) -> str:
        """Return the reason for differences from the paper in a table."""
        return self.on_divergence if table in {3, 4} else self.on_top_k


#: Number of rows evaluated at a time.
_SHAPLEY_BATCH = 1 << 18


def shapley_of_tables(worths: Floats) -> Floats:
    """Compute exact Shapley values from the worths of all coalitions, (n_games, 2**n_players)."""
    n_players = worths.shape[1].bit_length() - 1
    coalitions = np.arange(1 << n_players)
    sizes = np.bitwise_count(coalitions)
    values = np.empty((len(worths), n_players))
    for player in range(n_players):
        others = coalitions[coalitions >> player & 1 == 0]
        # Probability that exactly this coalition precedes the player in a random order.
        weights = 1 / (n_players * np.array([math.comb(n_players - 1, s) for s in sizes[others]]))
        gains = worths[:, others | 1 << player] - worths[:, others]
        values[:, player] = gains @ weights
    return values


def _absent_masks(formula: Formula) -> Bits:
    """Return masks (2**arity, n_inputs) of the variables that are not in each coalition."""
    masks = np.zeros((1 << formula.arity, formula.n_inputs), dtype=bool)
    coalitions = np.arange(len(masks))
    for player, variable in enumerate(formula.variables):
        masks[:, variable] = coalitions >> player & 1 == 0
    return masks


def _expand_to_inputs(formula: Formula, values: Floats) -> Floats:
    """Expand values of a formula's variables to all inputs; other inputs get 0."""
    result = np.zeros((len(values), formula.n_inputs))
    result[:, list(formula.variables)] = values
    return result


def _signs(formula: Formula, X: Bits) -> Floats:
    return np.where(formula.evaluate(X), 1.0, -1.0)


def kleene_shapley(formula: Formula, X: Bits) -> Floats:
    """Compute exact Shapley values of the game whose absent inputs are Unassigned.

    The worth is 1 if the formula has the row's decision, -1 if it has the other, 0 if Unassigned.
    """
    absent = _absent_masks(formula)
    worths = np.empty((len(X), len(absent)))
    size = max(1, _SHAPLEY_BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        coded = np.where(rows, 1, -1).astype(np.int8)[:, None, :] * ~absent
        values = formula.evaluate_kleene(coded.reshape(-1, formula.n_inputs))
        worths[begin : begin + size] = values.reshape(len(rows), -1)
    return _expand_to_inputs(formula, shapley_of_tables(worths * _signs(formula, X)[:, None]))


def completion_shapley(formula: Formula, X: Bits) -> Floats:
    """Compute exact Shapley values of the game whose absent inputs are random and independent.

    The worth is the fraction of assignments to the absent inputs that keep the row's decision.
    """
    absent = _absent_masks(formula)
    n_players = len(formula.variables)
    worths = np.empty((len(X), len(absent)))
    labels = formula.evaluate(X)
    size = max(1, _SHAPLEY_BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        flipped = (rows[:, None, :] ^ absent).reshape(-1, formula.n_inputs)
        same = (
            formula.evaluate(flipped).reshape(len(rows), -1) == labels[begin : begin + size, None]
        )
        # Column m flips the players absent from m; the sum over their subsets is an average.
        total = same.astype(float)
        for player in range(n_players):
            halves = total.reshape(len(rows), -1, 2, 1 << player)
            halves[:, :, 0, :] = (halves[:, :, 0, :] + halves[:, :, 1, :]) / 2
        worths[begin : begin + size] = total
    return _expand_to_inputs(formula, shapley_of_tables(worths))


def sampled_shapley(
    formula: Formula, X: Bits, n_pairs: int, generator: np.random.Generator
) -> tuple[Floats, int]:
    """Estimate Shapley values from random orders; absent inputs are Unassigned.

    Each of the `n_pairs` orders per row is used forwards and backwards. Return the estimates, and
    the number of queried coalitions per row.
    """
    n_rows, n_players = X.shape
    signs, coded = _signs(formula, X), np.where(X, 1, -1).astype(np.int8)
    values = np.zeros((n_rows, n_players))
    for _ in range(n_pairs):
        orders = np.argsort(generator.random((n_rows, n_players)), axis=1)
        for order in (orders, orders[:, ::-1]):
            position = np.argsort(order, axis=1)
            is_present = position[:, None, :] < np.arange(n_players + 1)[None, :, None]
            rows = (coded[:, None, :] * is_present).reshape(-1, n_players)
            worths = formula.evaluate_kleene(rows).reshape(n_rows, -1) * signs[:, None]
            np.add.at(values, (np.arange(n_rows)[:, None], order), np.diff(worths, axis=1))
    # The empty and the full coalition are queried once, the others for every order.
    return values / (2 * n_pairs), 2 + 2 * n_pairs * (n_players - 1)


#: Kinds of training data of a network: the three values of Kleene's logic, or only complete inputs,
#: encoded as -1 and +1, or as 0 and 1.
KINDS = ("three-valued", "two-valued", "zero-one")
_WIDTH, _LAYERS = 20, 6
_BATCH, _RATE = 512, 5e-3
_STEPS = 3000
#: Number of training steps between two checks of the accuracy.
_CHECK_INTERVAL = 100
_TRIES = 3


@dataclass(frozen=True)
class TrainedNetwork:
    """Network trained on a formula.

    Inputs are encoded as -1, 0 (Unassigned) and +1, or as 0 and 1 for the kind "zero-one".
    `accuracy` is the share of all complete assignments on which it agrees with the formula.
    """

    model: Any
    kind: str
    accuracy: float


def _torch() -> Any:
    return import_optional("torch", extra="captum", purpose="Training the paper's networks")


@contextmanager
def _single_thread(torch: Any, seed: int) -> Iterator[None]:
    """Run on one thread, the fastest for small layers, with a separate random state.

    Restore the number of threads and the random state afterwards.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # captum warns about its own hooks and gradients.
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def train_network(formula: Formula, kind: str, seed: int) -> TrainedNetwork:
    """Train six layers of twenty units; return the most accurate network of up to three tries."""
    best: TrainedNetwork | None = None
    for attempt in range(_TRIES):
        trained = _train_once(formula, kind, seed + attempt)
        if best is None or trained.accuracy > best.accuracy:
            best = trained
        if best.accuracy == 1:
            break
    assert best is not None
    return best


def _train_once(formula: Formula, kind: str, seed: int) -> TrainedNetwork:
    torch = _torch()
    generator = np.random.default_rng(seed)
    three_valued = kind == "three-valued"

    def labels(rows: NDArray[np.int8]) -> Any:
        values = formula.evaluate_kleene(rows).astype(np.int64)
        return torch.from_numpy(values + 1 if three_valued else (values + 1) // 2)

    def tensor(rows: NDArray[np.int8]) -> Any:
        return torch.from_numpy(_code_inputs(rows > 0 if kind == "zero-one" else rows))

    n = formula.n_inputs
    complete = ((np.arange(1 << n)[:, None] >> np.arange(n) & 1) * 2 - 1).astype(np.int8)
    checks = [(tensor(complete), labels(complete), 1.0)]
    if three_valued:
        partly = generator.integers(-1, 2, (4096, n), dtype=np.int8)
        checks.append((tensor(partly), labels(partly), 0.995))
    with _single_thread(torch, seed):
        model = _layers(torch, n, 3 if three_valued else 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
        steps = _STEPS
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
        for step in range(1, steps + 1):
            rows = complete[generator.integers(0, len(complete), _BATCH)]
            if three_valued:
                # From complete rows to rows without any input.
                share = generator.random((_BATCH, 1)) * (generator.random((_BATCH, 1)) < 0.75)
                rows = np.where(generator.random(rows.shape) < share, 0, rows).astype(np.int8)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(tensor(rows)), labels(rows)).backward()
            optimizer.step()
            schedule.step()
            if step % _CHECK_INTERVAL == 0:
                with torch.no_grad():
                    right = [float((model(X).argmax(1) == y).double().mean()) for X, y, _ in checks]
                if all(
                    r >= min_accuracy for r, (_, _, min_accuracy) in zip(right, checks, strict=True)
                ):
                    break
    model.eval()
    return TrainedNetwork(model, kind, right[0])


def _code_inputs(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return the inputs of a network: truth values as 0 and 1, other codes unchanged."""
    return rows.astype(np.float32)


def _layers(torch: Any, n_inputs: int, n_classes: int) -> Any:
    layers: list[Any] = []
    width = n_inputs
    for _ in range(_LAYERS):
        layers += [torch.nn.Linear(width, _WIDTH), torch.nn.ReLU()]
        width = _WIDTH
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, n_classes))


#: Methods of captum in the paper, and their classes.
CAPTUM = {
    "ShapleyValues": "ShapleyValueSampling",
    "KernelShap": "KernelShap",
    "Saliency": "Saliency",
    "DeepLift": "DeepLift",
    "InputXGrad": "InputXGradient",
    "IntegratedGrad": "IntegratedGradients",
}


def captum_maps(
    network: TrainedNetwork, X: NDArray[np.bool_], name: str, seed: int
) -> NDArray[np.float64]:
    """Return attributions of the predicted class by a method of captum with default settings.

    Saliency keeps captum's absolute values; other methods keep their signs.
    """
    torch = _torch()
    attr = import_optional("captum.attr", extra="captum", purpose="Running captum's methods")
    rows = torch.from_numpy(_code_inputs(X if network.kind == "zero-one" else np.where(X, 1, -1)))
    make: Callable[..., Any] = getattr(attr, CAPTUM[name])
    with _single_thread(torch, seed):
        with torch.no_grad():
            target = network.model(rows).argmax(1)
        method = make(network.model)
        if name == "KernelShap":  # it fits one row at a time
            attributions = torch.cat(
                [
                    method.attribute(rows[i : i + 1], target=target[i : i + 1])
                    for i in range(len(rows))
                ]
            )
        else:
            rows.requires_grad_("Shapley" not in name)
            attributions = method.attribute(rows, target=target)
    return np.asarray(attributions.detach().numpy(), dtype=float)


def _brex_method(preset: str, **options: Any) -> Callable[[Formula, Bits, int], Maps]:
    def explain(formula: Formula, X: Bits, seed: int) -> Maps:
        attributions = BReX(
            formula, preset=preset, masking="kleene", random_state=seed, **options
        ).explain(X.astype(int))
        return Maps(
            np.asarray(attributions.values, dtype=float), float(np.mean(attributions.queries))
        )

    return explain


def _exact_method(game: Callable[[Formula, Bits], Floats]) -> Callable[..., Maps]:
    def explain(formula: Formula, X: Bits, seed: int) -> Maps:
        return Maps(game(formula, X), float(1 << formula.arity))

    return explain


def _sample_permutations(formula: Formula, X: Bits, seed: int) -> Maps:
    """Use one random order per row in both directions, with about as many queries as B-ReX."""
    values, queries = sampled_shapley(formula, X, 1, np.random.default_rng(seed))
    return Maps(values, float(queries))


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator for the shap package, and restore it afterwards."""
    state = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        with warnings.catch_warnings():
            # shap warns if there are fewer samples than inputs, as in the paper.
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)


def _kernel_shap_method(samples: int | str) -> Callable[[Formula, Bits, int], Maps]:
    def explain(formula: Formula, X: Bits, seed: int) -> Maps:
        shap = import_optional("shap", extra="shap", purpose="Explaining by KernelSHAP")
        queries = 0

        def model(rows: Any) -> Floats:
            nonlocal queries
            queries += len(rows)
            return formula.evaluate_kleene(np.asarray(rows).astype(np.int8)).astype(float)

        with _global_seed(seed):
            explainer = shap.KernelExplainer(model, np.zeros((1, formula.n_inputs)))
            queries = 0
            coded = np.where(X, 1.0, -1.0)
            attributions = explainer.shap_values(coded, nsamples=samples, l1_reg=False, silent=True)
        signs = _signs(formula, X)[:, None]
        return Maps(np.asarray(attributions, dtype=float) * signs, queries / len(X))

    return explain


_NETWORKS = (
    "The paper states neither the encoding of the inputs nor whether its networks were trained on "
    "Unassigned inputs."
)
_THREE = "The network is trained on Kleene's three values, encoded as -1, 0 and +1."
_THREE_NEAR = "Gradient methods agree better with the paper than on two-valued networks."
_TWO = (
    "The network is trained on complete inputs only, encoded as -1 and +1, so it has not learned "
    "the meaning of the baseline 0."
)
_ZERO_ONE = (
    "The network is trained on complete inputs only, encoded as 0 and 1, so captum's baseline of 0 "
    "means False, and inputs of 0 have no attribution in methods that multiply by the input."
)
_TWO_NEAR = "Shapley values agree better with the paper than on three-valued networks."


def _network_methods() -> Iterator[Method]:
    for kind in KINDS:
        for printed, name in CAPTUM.items():
            yield Method(
                f"{name}:{kind}",
                f"captum {name}, {kind} network",
                printed,
                network=kind,
                package="captum",
                # One call per row; the other methods process all rows at once.
                max_rows=100 if name == "KernelShap" else 1000 if "Shapley" in name else None,
                quick=kind == "three-valued",
                on_divergence=_network_note(name, kind, divergence=True),
                on_top_k=_network_note(name, kind, divergence=False),
            )


#: Explanations of printed figures that the networks do not reproduce.
_INPUT_X_GRADIENT = (
    "The paper's figures are reproduced best with inputs encoded as 0 and 1, where inputs of 0 "
    "have no attribution. With -1 and +1, the figures are much better than printed."
)
_CHANCE = (
    "The paper's accuracies equal those of random guesses, 1 / C(12, k) for k responsible inputs "
    "(see the row 'All inputs equal'), but its divergences match estimates from 25 samples. They "
    "cannot both be right."
)
_NOISE = "With 25 samples, captum's default, the values of twelve inputs are mostly noise."


def _network_note(name: str, kind: str, *, divergence: bool) -> str:
    notes = [{"three-valued": _THREE, "two-valued": _TWO, "zero-one": _ZERO_ONE}[kind]]
    if name == "InputXGradient":
        notes.append(_INPUT_X_GRADIENT)
    elif name == "KernelShap":
        notes.append(_NOISE if divergence else _CHANCE)
    elif name == "IntegratedGradients" and not divergence:
        notes.append("Not in the paper's table.")
    else:
        notes.append(_NETWORKS)
        three_valued = kind == "three-valued"
        if divergence and kind != "zero-one" and three_valued != (name == "ShapleyValueSampling"):
            notes.append(_THREE_NEAR if three_valued else _TWO_NEAR)
    return " ".join(notes)


def _equal_values(formula: Formula, X: Bits, seed: int) -> Maps:
    """Return the same value for all inputs, so the top-k accuracy is that of random guesses."""
    return Maps(np.ones(X.shape), 0.0)


BREX_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "brex-paper",
            "B-ReX, preset paper",
            "B-ReX",
            _brex_method("paper"),
            on_divergence="One pass with four blocks. While a block is refined, the blocks that "
            "made the decision depend on it stay Unassigned. The paper states neither the number "
            "of blocks nor that of passes. The choice of the formulas changes a value by up to "
            "0.02; for monotone formulas of arity 7 and 10, the paper's figures are at the lower "
            "end of this range.",
            on_top_k="Inputs with a positive responsibility count as relevant; the labels of "
            "Tritscher et al., which the paper may have used, are not available. Ties at rank k "
            "are broken at random.",
        ),
        Method(
            "brex-literal",
            "B-ReX, preset literal",
            "B-ReX",
            _brex_method("literal"),
            ignores_zero_maps=True,
            on_divergence="Algorithm 3 as printed: no other input is Unassigned while a block is "
            "refined. Mean of twenty passes; rows without any attribution do not count.",
            on_top_k="Closest to the paper for 'and', 'or' and 'xor'. Rare errors there come from "
            "pairs of inputs that share no block in 10 to 20 passes. For xor-and-xor and "
            "non-monotone chains of arity 5 to 10, the paper's figures are lower, perhaps because "
            "its networks err on Unassigned inputs or it defines relevance differently.",
        ),
        Method(
            "brex-certified",
            "B-ReX, certified (ours)",
            "B-ReX",
            _brex_method("certified"),
            on_divergence="Not in the paper: each value is proven by a mask, its certificate, and "
            "the smallest mask of all passes is used instead of the mean.",
            on_top_k="Not in the paper. Irrelevant inputs never get an attribution. On long "
            "chains, six passes without a new query may end the search too early.",
        ),
        Method(
            "brex-patient",
            "B-ReX, certified, patience 20",
            "B-ReX",
            _brex_method("certified", patience=20, n_iterations=100),
            on_divergence="The certified preset with up to a hundred passes, stopped after twenty "
            "passes without a new query.",
            on_top_k="Not in the paper. The certified preset, stopped after twenty passes without "
            "a new query. This takes longer, but adds on average less than one query per row.",
        ),
        Method(
            "shapley-unassigned",
            "Shapley, exact, Unassigned",
            "ShapleyValues",
            _exact_method(kleene_shapley),
            on_divergence="Exact values of the formula, with absent inputs Unassigned. The paper "
            "samples them for a trained network.",
            on_top_k="Exact values of the formula. The paper samples them for a trained network, "
            "for which irrelevant inputs have values other than 0 as well.",
        ),
        Method(
            "shapley-completions",
            "Shapley, exact, completions",
            "ShapleyValues",
            _exact_method(completion_shapley),
            on_divergence="Exact values of the formula; each absent input is True or False with "
            "probability 1/2. The paper samples them for a trained network.",
            on_top_k="Exact values of the formula. The paper samples them for a trained network. "
            "Negative values count as 0.",
        ),
        Method(
            "shapley-sampled",
            "Shapley, one order both ways",
            "ShapleyValues",
            _sample_permutations,
            on_divergence="One random order and its reverse, with about as many queries of the "
            "formula as one pass of B-ReX; absent inputs are Unassigned.",
            on_top_k="One random order and its reverse. The paper uses 25 orders on a trained "
            "network.",
        ),
        Method(
            "kernel-shap-25",
            "KernelSHAP (shap), 25 samples",
            "KernelShap",
            _kernel_shap_method(25),
            package="shap",
            max_rows=100,
            on_divergence="Values of the formula with absent inputs Unassigned, from 25 samples, "
            "captum's default. With so few samples, the values of twelve inputs are mostly noise.",
            on_top_k=f"Values of the formula with absent inputs Unassigned. {_CHANCE}",
        ),
        Method(
            "kernel-shap",
            "KernelSHAP (shap), its default samples",
            "KernelShap",
            _kernel_shap_method("auto"),
            package="shap",
            max_rows=40,
            quick=False,
            on_divergence="Values of the formula with absent inputs Unassigned, from shap's "
            "default number of samples: almost exact Shapley values.",
            on_top_k="Almost exact, but the values of irrelevant inputs differ slightly from 0.",
        ),
        Method(
            "chance",
            "All inputs equal",
            "KernelShap",
            _equal_values,
            on_divergence="Not in the paper: the same value for all twelve inputs.",
            on_top_k="Not in the paper: with random tie-breaking, the expected accuracy is "
            "1 / C(12, k) for k responsible inputs; the paper prints these values for KernelShap.",
        ),
        *_network_methods(),
    )
}


def missing(methods: Sequence[Method]) -> dict[str, list[Method]]:
    """Return the methods that cannot run, by the missing extra."""
    result: dict[str, list[Method]] = {}
    for method in methods:
        if method.package and importlib.util.find_spec(method.package) is None:
            result.setdefault(method.package, []).append(method)
    return result
