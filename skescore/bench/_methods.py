"""Methods of one's own for a benchmark: one Python file says how each finds rules."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import cloudpickle

from skescore.bench._configuration import ConfigurationError
from skescore.extractors import SurrogateExtractor

__all__ = ["read_methods"]


def read_methods(path: Path) -> list[dict[str, Any]]:
    """Run a Python file that says what methods to compare, and give entries of ``extractors``.

    Use it to enter what is no extractor of this package into a benchmark: a learner of rules of
    another library, or a function of yours.

    Parameters
    ----------
    path : Path
        The file, which is run: only files you trust. It holds a dict ``METHODS``, by label, of

        - learners of rules, or functions, see `learner` of
          :class:`~skescore.extractors.SurrogateExtractor`,
        - extractors or their classes,
        - entries as :func:`config_from` takes them, with ``"name"``, such as
          ``{"name": "search", "trials": 20}``.

    Returns
    -------
    list of dict
        Entries for the list ``extractors`` of :func:`config_from`.

    Raises
    ------
    ConfigurationError
        A ValueError: the file cannot be run, or holds no methods.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.bench import config_from, read_methods
    >>> program = '''
    ... from sklearn.tree import DecisionTreeClassifier
    ... METHODS = {"stump": {"classification": DecisionTreeClassifier(max_depth=1)}}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.py"
    ...     _ = path.write_text(program)
    ...     entries = read_methods(path)
    >>> config = config_from({"data": ["iris"], "black_boxes": ["knn"], "extractors": entries})
    >>> config.extractors[0].label
    'stump'
    """
    path = path.resolve()
    # A folder of rows knows methods by it, also where both have been moved.
    name = re.sub(r"\W", "_", f"skescore_methods_{path.stem}")
    if getattr(sys.modules.get(name), "__file__", str(path)) != str(path):
        name += f"_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigurationError(f"{path} is no Python file. Name a file that ends in .py.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigurationError(
            f"{path} cannot be run: {type(error).__name__}: {error}"
        ) from error
    # Other processes cannot import it.
    cloudpickle.register_pickle_by_value(module)
    methods = getattr(module, "METHODS", None)
    if not isinstance(methods, Mapping) or not methods:
        raise ConfigurationError(
            f"{path} must hold METHODS, a dict of methods by label, got {methods!r}."
        )
    return [_entry(path, str(label), method) for label, method in methods.items()]


def _entry(path: Path, label: str, method: Any) -> dict[str, Any]:
    if isinstance(method, Mapping) and "name" in method:
        return {"label": label, **method}
    if isinstance(method, type) or "estimator" in getattr(method, "_get_param_names", list)():
        if hasattr(method, "tasks"):
            return {"label": label, "extractor": method}
        raise ConfigurationError(
            f"{path}, {label!r}: a class must be an extractor; of a learner pass an instance."
        )
    extractor = SurrogateExtractor(None, dict(method) if isinstance(method, Mapping) else method)
    if isinstance(method, Mapping):
        extractor.__dict__["tasks"] = tuple(method)  # of this one, not of the class
    return {"label": label, "extractor": extractor}
