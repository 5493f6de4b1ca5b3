"""Certificates: proofs of how far rules are from the best possible rules of a given kind.

For decision trees and decision lists of every size, :func:`certify` proves a lower bound of the
loss, from which a bound of the best score follows for any weights. A certificate compares complete
rules on specific rows; it does not apply to new rows. :func:`check_certificate` checks a
certificate with an independent program.
"""

from skescore.certificates._bounds import bound_weighted_f1
from skescore.certificates._certificate import (
    Certificate,
    CertificateSettings,
    HeldOut,
    ScoreBounds,
    certificate_schema,
)
from skescore.certificates._certify import certify, check_certificate
from skescore.certificates._check import CheckResult
from skescore.certificates._problem import (
    CertifiedRows,
    GivenRules,
    measure_incumbent,
    rows_checksum,
)

__all__ = [
    "Certificate",
    "CertificateSettings",
    "CertifiedRows",
    "CheckResult",
    "GivenRules",
    "HeldOut",
    "ScoreBounds",
    "bound_weighted_f1",
    "certificate_schema",
    "certify",
    "check_certificate",
    "measure_incumbent",
    "rows_checksum",
]
