"""Checks for suspicious data and results, which report evidence and a remedy."""

from skescore.suspicions._catalog import SUSPICION_CHECKS, count_reports, find_suspicions
from skescore.suspicions._drift import (
    ColumnProfile,
    count_outside,
    find_drift,
    profile_columns,
)
from skescore.suspicions._facts import ResultFacts, TableFacts
from skescore.suspicions._record import (
    Evidence,
    Suspicion,
    SuspicionCheck,
    SuspiciousDataWarning,
)
from skescore.suspicions._table_checks import similar_class_names

__all__ = [
    "SUSPICION_CHECKS",
    "ColumnProfile",
    "Evidence",
    "ResultFacts",
    "Suspicion",
    "SuspicionCheck",
    "SuspiciousDataWarning",
    "TableFacts",
    "count_outside",
    "count_reports",
    "find_drift",
    "find_suspicions",
    "profile_columns",
    "similar_class_names",
]
