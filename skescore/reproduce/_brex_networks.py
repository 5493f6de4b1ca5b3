"""Networks like the paper's, trained on a formula, and the attributions that captum gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore.attribution import Formula

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
    """A network that has learnt a formula.

    Parameters
    ----------
    model : torch.nn.Sequential
        Takes inputs coded -1, 0 (Unassigned) and +1; gives one number per class.
    kind : str
        One of :data:`KINDS`.
    accuracy : float
        Share of all complete assignments that it answers as the formula does.
    """

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
    """Train six layers of twenty units until they answer every complete assignment right.

    Notes
    -----
    A three-valued network learns Kleene's values of partly unassigned rows as well, and goes on
    until it has at least 99.5 % of them right. A start that leads nowhere is given up for another;
    the best network is kept.
    """
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
