"""Check that every engine computes the same results as pandas, on random rules and rows.

    python benchmarks/scale/engines.py --cases 200 --engines duckdb postgresql spark dask

The tests generate the rule sets, and rows at the bounds of the rules with missing values,
categories and weights. `tests/interop/test_sources.py` starts the engines. All values of scores,
reports and characteristics are compared: counts exactly, floats to 1e-12.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))

from loaded_files import load_file

ENGINES = ("parquet", "file", "duckdb", "postgresql", "spark", "dask")


@contextlib.contextmanager
def open_engine(engine: str, test_module: Any, folder: Path) -> Iterator[Any]:
    """Yield a function that stores a data frame in an engine and returns its row source."""
    if engine == "postgresql":
        with test_module.storages.running_postgresql() as server:
            url = server.new_database()
            yield lambda frame, _: test_module.store(url, frame)
    elif engine == "spark":
        with test_module.running_spark(folder) as session:
            yield lambda frame, _: test_module.in_spark(session, frame)
    elif engine == "dask":
        import dask
        import dask.dataframe

        # Otherwise dask converts True and False to texts in columns with missing values.
        with test_module.running_dask(), dask.config.set({"dataframe.convert-string": False}):
            yield lambda frame, _: dask.dataframe.from_pandas(frame, npartitions=3)
    else:
        yield test_module.here.SOURCES[{"parquet": "folder"}.get(engine, engine)]


def check_engine(engine: str, n_cases: int, test_module: Any, seed: int) -> bool:
    """Check random cases on an engine; return whether all agree."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as with_seed
    from hypothesis import strategies as st

    n_checked, failures, start = 0, [], time.perf_counter()
    # PostgreSQL raises an error when the smallest floats are halved.
    min_weight = 1e-300 if engine == "postgresql" else 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        open_engine(engine, test_module, Path(folder)) as make_source,
    ):

        @with_seed(seed)
        @settings(
            max_examples=n_cases,
            suppress_health_check=list(HealthCheck),
            deadline=None,
            phases=[Phase.generate],
            database=None,
        )
        @given(data=st.data())
        def check(data: Any) -> None:
            nonlocal n_checked
            try:
                with tempfile.TemporaryDirectory() as folder_name:
                    test_module.here.check_any_rules(
                        data, Path(folder_name), make_source, least=min_weight
                    )
            except AssertionError as error:
                failures.append(" ".join(str(error).split())[:300])
            n_checked += 1

        check()
    seconds = time.perf_counter() - start
    print(
        f"{engine}: {n_checked - len(failures)} of {n_checked} cases agree, {seconds:.0f} s",
        flush=True,
    )
    for text in dict.fromkeys(failures[:5]):
        print("   ", text, flush=True)
    return not failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    test_module = load_file("interop/test_sources.py")
    verdicts = [
        check_engine(engine, options.cases, test_module, options.seed) for engine in options.engines
    ]
    sys.exit(not all(verdicts))


if __name__ == "__main__":
    main()
