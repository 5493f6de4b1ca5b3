"""Certificates: how far rules are from the best possible ones of a stated kind, proven.

:func:`certify` finds, for decision trees and decision lists of every size, the least loss between
two bounds. A score that gets no better by errors or rules then has its best value between two
bounds as well, whatever its weights. A certificate speaks of complete rules, of the rows that it
was made on, and never of new rows. :func:`check_certificate` checks one by a program of its own.
"""

from skescore.certificates._bounds import most_weighted_f1
from skescore.certificates._certificate import (
    Certificate,
    CertificateSettings,
    CertifiedRows,
    GivenRules,
    HeldOut,
    Interval,
    certify,
    rows_checksum,
)
from skescore.certificates._check import CheckResult, check_certificate

__all__ = [
    "Certificate",
    "CertificateSettings",
    "CertifiedRows",
    "CheckResult",
    "GivenRules",
    "HeldOut",
    "Interval",
    "certify",
    "check_certificate",
    "most_weighted_f1",
    "rows_checksum",
]
