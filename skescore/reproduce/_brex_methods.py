"""The explainers of the benchmark on Boolean attributions."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore.attribution import Formula

# --- shapley values of small games: exact ones from the worth of all coalitions, and samp --------

Floats = NDArray[np.float64]

#: Rows of a formula's inputs evaluated at a time.
_SHAPLEY_BATCH = 1 << 18
#: Players of a game whose coalitions are all looked at.
MOST_PLAYERS = 16


def shapley_of_tables(worth: Floats) -> Floats:
    """Compute exact Shapley values of games whose worths are known for every coalition."""
    n_players = worth.shape[1].bit_length() - 1
    if worth.shape[1] != 1 << n_players:
        raise ValueError(
            f"worth must have a column for each of 2**n coalitions, got {worth.shape[1]} columns."
        )
    coalitions = np.arange(1 << n_players)
    sizes = np.bitwise_count(coalitions)
    values = np.empty((len(worth), n_players))
    for player in range(n_players):
        without = coalitions[coalitions >> player & 1 == 0]
        # How likely a random order brings exactly this coalition before the player.
        weights = 1 / (n_players * np.array([math.comb(n_players - 1, s) for s in sizes[without]]))
        gains = worth[:, without | 1 << player] - worth[:, without]
        values[:, player] = gains @ weights
    return values


def _absent(formula: Formula) -> NDArray[np.bool_]:
    """Masks of shape (2**arity, n_inputs): the variables that are not in each coalition."""
    variables = np.array(formula.variables, dtype=np.intp)
    if len(variables) > MOST_PLAYERS:
        raise ValueError(
            f"Exact Shapley values look at all coalitions, of at most {MOST_PLAYERS} variables, "
            f"got {len(variables)}."
        )
    masks = np.zeros((1 << len(variables), formula.n_inputs), dtype=bool)
    coalitions = np.arange(len(masks))
    for place, variable in enumerate(variables.tolist()):
        masks[:, variable] = coalitions >> place & 1 == 0
    return masks


def _spread(formula: Formula, values: Floats) -> Floats:
    result = np.zeros((len(values), formula.n_inputs))
    result[:, list(formula.variables)] = values
    return result


def kleene_shapley(formula: Formula, X: NDArray[np.bool_]) -> Floats:
    """Exact Shapley values of the game whose absent inputs are Unassigned.

    The worth is 1 where the formula has the row's decision, -1 where it has the other and 0 where
    it is Unassigned.
    """
    absent = _absent(formula)
    worth = np.empty((len(X), len(absent)))
    signs = np.where(formula.evaluate(X), 1.0, -1.0)
    size = max(1, _SHAPLEY_BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        coded = np.where(rows, 1, -1).astype(np.int8)[:, None, :] * ~absent
        said = formula.evaluate_kleene(coded.reshape(-1, formula.n_inputs))
        worth[begin : begin + size] = said.reshape(len(rows), -1)
    return _spread(formula, shapley_of_tables(worth * signs[:, None]))


def completion_shapley(formula: Formula, X: NDArray[np.bool_]) -> Floats:
    """Exact Shapley values of the game whose absent inputs are drawn as fair coins.

    The worth is the share of completions with the row's decision.
    """
    absent = _absent(formula)
    n_players = len(formula.variables)
    worth = np.empty((len(X), len(absent)))
    now = formula.evaluate(X)
    size = max(1, _SHAPLEY_BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        flipped = (rows[:, None, :] ^ absent).reshape(-1, formula.n_inputs)
        same = formula.evaluate(flipped).reshape(len(rows), -1) == now[begin : begin + size, None]
        # Column m flips the players absent from m; summing over fewer of them averages.
        total = same.astype(float)
        for player in range(n_players):
            halves = total.reshape(len(rows), -1, 2, 1 << player)
            halves[:, :, 0, :] = (halves[:, :, 0, :] + halves[:, :, 1, :]) / 2
        worth[begin : begin + size] = total
    return _spread(formula, shapley_of_tables(worth))


def sampled_shapley(
    worth: Callable[[NDArray[np.bool_], NDArray[np.intp]], Floats],
    n_rows: int,
    n_players: int,
    *,
    n_pairs: int,
    generator: np.random.Generator,
) -> tuple[Floats, int]:
    """Estimate Shapley values from random orders, each walked forwards and backwards."""
    values = np.zeros((n_rows, n_players))
    games = np.repeat(np.arange(n_rows), n_players + 1)
    for _ in range(n_pairs):
        orders = np.argsort(generator.random((n_rows, n_players)), axis=1)
        for order in (orders, orders[:, ::-1]):
            position = np.argsort(order, axis=1)
            present = position[:, None, :] < np.arange(n_players + 1)[None, :, None]
            said = worth(present.reshape(-1, n_players), games).reshape(n_rows, -1)
            np.add.at(values, (np.arange(n_rows)[:, None], order), np.diff(said, axis=1))
    # No player and all of them are asked for once, the rest of every walk anew.
    return values / (2 * n_pairs), 2 + 2 * n_pairs * (n_players - 1)


# --- networks like the paper's, trained on a formula, and the attributions that captum gi --------

#: What a network has learnt: complete inputs only, or the three values of Kleene's logic.
KINDS = ("three-valued", "two-valued")
_WIDTH, _LAYERS = 20, 6
_BATCH, _RATE = 512, 5e-3
_STEPS = {"two-valued": 3000, "three-valued": 3000}
#: How often it is looked whether a network has learnt enough, in steps.
_EVERY = 100
_TRIES = 3


@dataclass(frozen=True)
class TrainedNetwork:
    """A network that has learnt a formula."""

    model: Any
    kind: str
    accuracy: float


def _torch() -> Any:
    return import_optional("torch", extra="captum", purpose="Training the paper's networks")


@contextmanager
def _alone(torch: Any, seed: int) -> Iterator[None]:
    """Run on one thread, which such small layers are quickest on, with random numbers of our own.

    Both are put back as they were.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # captum tells of the hooks and gradients that it sets.
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def train(formula: Formula, kind: str, seed: int) -> TrainedNetwork:
    """Train six layers of twenty units until they answer every complete assignment right."""
    best: TrainedNetwork | None = None
    for attempt in range(_TRIES):
        trained = _trained_once(formula, kind, seed + attempt)
        if best is None or trained.accuracy > best.accuracy:
            best = trained
        if best.accuracy == 1:
            break
    assert best is not None
    return best


def _trained_once(formula: Formula, kind: str, seed: int) -> TrainedNetwork:
    torch = _torch()
    generator = np.random.default_rng(seed)
    three_valued = kind == "three-valued"

    def answers(rows: NDArray[np.int8]) -> Any:
        values = formula.evaluate_kleene(rows).astype(np.int64)
        return torch.from_numpy(values + 1 if three_valued else (values + 1) // 2)

    def tensor(rows: NDArray[np.int8]) -> Any:
        return torch.from_numpy(rows.astype(np.float32))

    n = formula.n_inputs
    complete = ((np.arange(1 << n)[:, None] >> np.arange(n) & 1) * 2 - 1).astype(np.int8)
    checks = [(tensor(complete), answers(complete), 1.0)]
    if three_valued:
        partly = generator.integers(-1, 2, (4096, n), dtype=np.int8)
        checks.append((tensor(partly), answers(partly), 0.995))
    with _alone(torch, seed):
        model = _layers(torch, n, 3 if three_valued else 2)
        optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
        steps = _STEPS[kind]
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
        for step in range(1, steps + 1):
            rows = complete[generator.integers(0, len(complete), _BATCH)]
            if three_valued:
                # From complete rows to rows of which nothing is left.
                share = generator.random((_BATCH, 1)) * (generator.random((_BATCH, 1)) < 0.75)
                rows = np.where(generator.random(rows.shape) < share, 0, rows).astype(np.int8)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(tensor(rows)), answers(rows)).backward()
            optimiser.step()
            schedule.step()
            if step % _EVERY == 0:
                with torch.no_grad():
                    right = [float((model(X).argmax(1) == y).double().mean()) for X, y, _ in checks]
                if all(r >= least for r, (_, _, least) in zip(right, checks, strict=True)):
                    break
    model.eval()
    return TrainedNetwork(model, kind, right[0])


def _layers(torch: Any, n_inputs: int, n_classes: int) -> Any:
    layers: list[Any] = []
    width = n_inputs
    for _ in range(_LAYERS):
        layers += [torch.nn.Linear(width, _WIDTH), torch.nn.ReLU()]
        width = _WIDTH
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, n_classes))


#: The paper's name of every method of captum that it ran, and its class there.
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
    """Attributions of the predicted class by a method of captum at its default settings.

    Saliency is left with the absolute values that captum gives; the others keep their signs.
    """
    torch = _torch()
    attr = import_optional("captum.attr", extra="captum", purpose="Running captum's methods")
    rows = torch.from_numpy(np.where(X, 1, -1).astype(np.float32))
    make: Callable[..., Any] = getattr(attr, CAPTUM[name])
    with _alone(torch, seed):
        with torch.no_grad():
            target = network.model(rows).argmax(1)
        method = make(network.model)
        if name == "KernelShap":  # it fits one row at a time
            found = torch.cat([
                method.attribute(rows[i : i + 1], target=target[i : i + 1])
                for i in range(len(rows))
            ])  # fmt: skip
        else:
            rows.requires_grad_("Shapley" not in name)
            found = method.attribute(rows, target=target)
    return np.asarray(found.detach().numpy(), dtype=float)


# --- The explainers of the benchmark on Boolean attributions -------------------------------------


@dataclass(frozen=True)
class Maps:
    """Attributions of some rows, and the mean number of different questions asked per row."""

    values: Floats
    queries: float


@dataclass(frozen=True)
class Method:
    """An explainer of the benchmark."""

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
