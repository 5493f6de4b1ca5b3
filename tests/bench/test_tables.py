from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from skescore.bench import failures, rank_extractors, ranked_columns, row_columns, summarize

MEASURES = row_columns()[row_columns().index("size") + 1 : -1]


def rows(*given):
    """Return rows of (data, extractor, ICE or an error message) for one black box."""
    table = [
        {
            "data": data,
            "task": task,
            "black_box": "knn",
            "extractor": extractor,
            "seed": 0,
            "fold": i,
            "state": "failed" if isinstance(value, str) else "complete",
            "error": value if isinstance(value, str) else "",
            "ice": math.nan if isinstance(value, str) else value,
            "fire": math.nan if isinstance(value, str) else 1 - value,
        }
        for i, (data, extractor, value, task) in enumerate(
            (*row, "classification")[:4] for row in given
        )
    ]
    return pd.DataFrame(table).reindex(columns=row_columns())


def random_rows(seed=0):
    generator = np.random.default_rng(seed)
    table = []
    for data in ("iris", "wine", "moons"):
        for box in ("knn", "svm"):
            for extractor in ("cart", "iter", "gridex"):
                for fold in range(4):
                    row = dict.fromkeys(MEASURES, 0.0)
                    row |= {name: float(generator.normal()) for name in MEASURES}
                    failed = generator.uniform() < 0.2
                    table.append(
                        {
                            **(dict.fromkeys(MEASURES, math.nan) if failed else row),
                            "data": data,
                            "black_box": box,
                            "extractor": extractor,
                            "seed": 0,
                            "fold": fold,
                            "task": "classification",
                            "state": "failed" if failed else "complete",
                            "error": "ValueError: no" if failed else "",
                        }
                    )
    return pd.DataFrame(table).reindex(columns=row_columns())


def test_summarize_matches_a_loop():
    table = random_rows()
    summary = summarize(table)
    assert len(summary) == 18
    for row in summary.to_dict("records"):
        runs = [
            other
            for other in table.to_dict("records")
            if all(other[key] == row[key] for key in ("data", "black_box", "extractor"))
        ]
        assert row["runs"] == len(runs) == 4
        done = [other for other in runs if other["state"] == "complete"]
        assert row["failed"] == 4 - len(done)
        for name in set(MEASURES) - {"loss_q"}:
            values = [other[name] for other in done]
            if not values:
                assert math.isnan(row[f"{name}_mean"])
                continue
            mean = sum(values) / len(values)
            spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
            assert row[f"{name}_mean"] == pytest.approx(mean)
            assert row[f"{name}_std"] == pytest.approx(spread)


def test_summarize_counts_undefined_scores():
    table = rows(("iris", "cart", 0.5), ("iris", "cart", math.nan), ("iris", "cart", "broken"))
    row = summarize(table).iloc[0]
    assert (row["runs"], row["failed"], row["undefined"]) == (3, 1, 1)
    assert row["ice_mean"] == 0.5


def test_rank_extractors_ranks_means():
    table = random_rows(3)
    table = table.assign(state="complete", error="").fillna(dict.fromkeys(MEASURES, 0.25))
    for score in ("ice", "fire"):
        (ranking,) = rank_extractors(table, score)
        for data, part in table.groupby("data"):
            means = part.groupby("extractor")[score].mean()
            expected = rankdata(-means if ranked_columns()[score] else means)
            assert ranking.comparison.ranks.loc[data, means.index].tolist() == expected.tolist()


def test_rank_extractors_ranks_failures_last():
    table = rows(
        ("iris", "a", 0.99),
        ("iris", "a", "MemoryError: no"),
        ("iris", "b", 0.5),
        ("iris", "b", 0.6),
        ("iris", "c", "ValueError"),
        ("iris", "c", "ValueError"),
        ("iris", "d", math.nan),
        ("iris", "d", 0.9),
    )
    (ranking,) = rank_extractors(table)
    assert dict(zip(ranking.table["extractor"], ranking.table["rank"], strict=True)) == {
        "b": 1,
        "a": 2,
        "d": 3,
        "c": 4,
    }
    assert ranking.table["wins"].tolist() == [1, 0, 0, 0]
    counted = failures(table)
    assert counted[["extractor", "error", "count"]].to_numpy().tolist() == [
        ["a", "MemoryError: no", 1],
        ["c", "ValueError", 2],
    ]


def test_rank_extractors_ties_up_to_rounding():
    table = rows(("iris", "a", 0.3), ("iris", "b", 0.1 + 0.2), ("iris", "c", 0.2))
    (ranking,) = rank_extractors(table)
    assert ranking.comparison.ranks.iloc[0].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert ranking.table.set_index("extractor")["wins"].to_dict() == {"a": 1, "b": 1, "c": 0}


def test_rank_extractors_separates_tasks():
    table = rows(
        ("iris", "a", 0.3),
        ("iris", "b", 0.2),
        ("wine", "a", 0.3),
        ("wine", "b", 0.1),
        ("wine", "c", 0.9),
        ("diabetes", "a", 0.1, "regression"),
        ("diabetes", "d", 0.2, "regression"),
    )
    first, second = rank_extractors(table)
    assert (first.task, second.task) == ("classification", "regression")
    assert first.table["extractor"].tolist() == ["a", "b"]
    assert first.left_out == ("c",)
    assert second.table["extractor"].tolist() == ["d", "a"]
    assert first.table["data_sets"].tolist() == [2, 2]


def test_rank_extractors_rejects_unknown_scores():
    with pytest.raises(ValueError, match=r"got 'icy'. Did you mean 'ice'\?"):
        rank_extractors(rows(("iris", "a", 0.3)), "icy")
