"""Interface of rows outside of memory, of which a search uses a sample."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from skescore.metrics import RuleCounts
from skescore.rules import RuleSet

__all__ = ["CountableSource", "SearchableSource"]


class CountableSource(Protocol):
    """Rows outside of memory that can be counted for the scores of rules."""

    def count_rows(self, rules: RuleSet, black_box: Any = None) -> RuleCounts:
        """Count all rows, with the labels of the source or the predictions of a black box."""


@runtime_checkable
class SearchableSource(CountableSource, Protocol):
    """Rows outside of memory that :meth:`ExtractorSearchCV.fit` accepts."""

    def draw_sample(self, n_rows: int, task: str, random_state: int) -> tuple[Any, Any, Any]:
        """Draw a sample; return its features, its labels, and its weights or None."""
