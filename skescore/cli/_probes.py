"""Trials of what may be broken, each to be run in a process of its own.

A broken package can end its process, Java can be started once per process only, and some packages
change what does not belong to them. So nothing here is called by this process: see `try_out`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["PROBES", "try_out"]

_MARK = "skescore-probe:"
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from skescore.cli import probes; probes.main(sys.argv[2], json.loads(sys.argv[3]))"
)
SECONDS = 120.0


def try_out(
    probe: str, given: Any, environment: Mapping[str, str], seconds: float = SECONDS
) -> tuple[list[dict[str, Any]], str]:
    """Run a probe in another process.

    Parameters
    ----------
    probe : str
        One of :data:`PROBES`.
    given : object
        What it shall try; something that JSON can hold.
    environment : mapping of str to str
        The environment of the process.
    seconds : float, default=120.0
        The process is ended after this time.

    Returns
    -------
    answers : list of dict
        What the probe told.
    trouble : str
        Why the process did not come to its end; empty if it did.
    """
    words = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), probe, json.dumps(given)]
    trouble = ""
    try:
        done = subprocess.run(
            words, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        out, err = done.stdout, done.stderr
        if done.returncode:
            last = _text(err).strip().splitlines() or ["no message"]
            trouble = f"the process ended with code {done.returncode}: {last[-1][:300]}"
    except subprocess.TimeoutExpired as error:
        out, trouble = error.stdout or b"", f"no answer within {seconds:g} seconds"
    except OSError as error:
        out, trouble = b"", f"no process can be started: {error}"
    answers = []
    for line in _text(out).splitlines():
        _, mark, text = line.partition(_MARK)
        with contextlib.suppress(ValueError):
            if mark:
                answers.append(json.loads(text))
    return answers, trouble


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


# --- in the other process ------------------------------------------------------------------------


def main(probe: str, given: Any) -> None:
    """Run a probe here; called in the other process only."""
    code = 0
    try:
        PROBES[probe](given)
    except BaseException as error:
        _tell(error=_told(error))
        code = 1
    sys.stdout.flush()
    # Not by the usual way out, on which a Java machine or a half-loaded package can still stumble.
    os._exit(code)


def _tell(**answer: Any) -> None:
    # A line of its own, whatever the package under trial has written before.
    sys.stdout.write(f"\n{_MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()


def _told(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}".removesuffix(": ")


def _imports(given: Sequence[str]) -> None:
    """Import modules one by one."""
    for name in given:
        _tell(module=name, state="started")
        try:
            importlib.import_module(name)
        except BaseException as error:
            _tell(module=name, state="broken", detail=_told(error))
        else:
            _tell(module=name, state="ok", detail="")


def _plugins(given: Sequence[str]) -> None:
    """Look up the extractors of installed packages by name, which imports them."""
    from skescore.registry import extractor_spec

    for name in given:
        _tell(name=name, state="started")
        try:
            extractor_spec(name)
        except BaseException as error:
            _tell(name=name, state="broken", detail=str(error) or _told(error))
        else:
            _tell(name=name, state="ok", detail="")


def _psyke(given: Any) -> None:
    """Let PSyKE extract rules of a tree, for classes and for numbers."""
    _tell(step="importing psyke")
    from psyke import Extractor

    _tell_java()
    import numpy as np
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows = pd.DataFrame({"a": np.linspace(0.0, 1.0, 40), "b": np.tile([0.0, 1.0], 20)})
    _tell(step="extracting rules by GridEx")
    from psyke.extraction.hypercubic import Grid
    from psyke.extraction.hypercubic.strategy import FixedStrategy

    high = rows["a"] > 0.5
    labels = np.where(high, "high", "low")
    model = DecisionTreeClassifier(random_state=0).fit(rows, labels)
    extractor = Extractor.gridex(model, Grid(1, FixedStrategy(2)), threshold=0.1, min_examples=1)
    extractor.extract(rows.assign(y=labels))
    if list(extractor.predict(rows)) != list(labels):
        raise ValueError("psyke's rules answer otherwise than they must")
    _tell(works=True)
    if importlib.util.find_spec("deap") is None:
        _tell(lacks="deap")
    for target, kind in ((labels, DecisionTreeClassifier), (high * 2.0, DecisionTreeRegressor)):
        try:
            cart = Extractor.cart(kind(random_state=0).fit(rows, target), max_depth=2, max_leaves=2)
            cart.extract(rows.assign(y=target))
        except Exception as error:
            _tell(cart=kind.__name__, detail=_told(error))


def _rulekit(given: Any) -> None:
    """Let RuleKit learn rules."""
    _tell(step="importing rulekit")
    import numpy as np
    import pandas as pd
    from rulekit.classification import RuleClassifier

    rows = pd.DataFrame({"a": np.linspace(0.0, 1.0, 40), "b": np.tile([0.0, 1.0], 20)})
    labels = pd.Series(np.where(rows["a"] > 0.5, "high", "low"), name="y")
    _tell(step="learning rules")
    model = RuleClassifier().fit(rows, labels)
    _tell_java()
    if list(model.predict(rows)) != list(labels):
        raise ValueError("RuleKit's rules answer otherwise than they must")
    _tell(works=True)


def _tell_java() -> None:
    jpype = importlib.import_module("jpype")
    _tell(java=".".join(map(str, jpype.getJVMVersion())), library=str(jpype.getDefaultJVMPath()))


#: The trials by name.
PROBES: dict[str, Callable[[Any], None]] = {
    "imports": _imports,
    "plugins": _plugins,
    "psyke": _psyke,
    "rulekit": _rulekit,
}
