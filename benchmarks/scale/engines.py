"""Any rules on any rows have the numbers of memory, on every engine: so many cases of each.

    python benchmarks/scale/engines.py --cases 200 --engines duckdb postgresql spark dask

Rule sets and rows at their borders, with gaps, categories and weights, are those of the tests; the
engines are those of `tests/interop/test_sources.py`, started for the run. Every number of scores,
reports and characteristics is compared: counts exactly, floats to 1e-12.
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
def source(engine: str, kit: Any, folder: Path) -> Iterator[Any]:
    """Yield a row source of an engine for a frame."""
    if engine == "postgresql":
        with kit.storages.running_postgresql() as server:
            url = server.new_database()
            yield lambda frame, _: kit.store(url, frame)
    elif engine == "spark":
        with kit.running_spark(folder) as session:
            yield lambda frame, _: kit.in_spark(session, frame)
    elif engine == "dask":
        import dask
        import dask.dataframe

        # Otherwise dask makes True and False beside gaps texts.
        with kit.running_dask(), dask.config.set({"dataframe.convert-string": False}):
            yield lambda frame, _: dask.dataframe.from_pandas(frame, npartitions=3)
    else:
        yield kit.here.SOURCES[{"parquet": "folder"}.get(engine, engine)]


def run(engine: str, n_cases: int, kit: Any, seed: int) -> bool:
    """Put so many cases to an engine; whether all agree."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    tried, failures, begin = 0, [], time.perf_counter()
    # The least floats times a half are errors in PostgreSQL.
    min_weight = 1e-300 if engine == "postgresql" else 0.0
    with tempfile.TemporaryDirectory() as folder, source(engine, kit, Path(folder)) as row_source:

        @seeded(seed)
        @settings(
            max_examples=n_cases,
            suppress_health_check=list(HealthCheck),
            deadline=None,
            phases=[Phase.generate],
            database=None,
        )
        @given(data=st.data())
        def check(data: Any) -> None:
            nonlocal tried
            try:
                with tempfile.TemporaryDirectory() as folder_name:
                    kit.here.check_any_rules(data, Path(folder_name), row_source, least=min_weight)
            except AssertionError as error:
                failures.append(" ".join(str(error).split())[:300])
            tried += 1

        check()
    seconds = time.perf_counter() - begin
    print(f"{engine}: {tried - len(failures)} of {tried} cases agree, {seconds:.0f} s", flush=True)
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
    kit = load_file("interop/test_sources.py")
    agreed = [run(engine, options.cases, kit, options.seed) for engine in options.engines]
    sys.exit(not all(agreed))


if __name__ == "__main__":
    main()
