"""Verification: agreement of rules with a model over a whole domain, with proofs and witnesses."""

from skescore.verification._check import VerificationCheck, check_verification
from skescore.verification._intervals import ShareInterval
from skescore.verification._limits import VerificationLimits
from skescore.verification._picture import DisagreementMap
from skescore.verification._refine import WitnessSampling, refine
from skescore.verification._result import (
    OutputRange,
    ProvenShares,
    RuleVerification,
    TrustedPart,
    Verification,
)
from skescore.verification._selection import (
    UnverifiedCandidateWarning,
    VerifiedChoice,
    choose_verified,
)
from skescore.verification._verify import verify
from skescore.verification._witness import Witness

__all__ = [
    "DisagreementMap",
    "OutputRange",
    "ProvenShares",
    "RuleVerification",
    "ShareInterval",
    "TrustedPart",
    "UnverifiedCandidateWarning",
    "Verification",
    "VerificationCheck",
    "VerificationLimits",
    "VerifiedChoice",
    "Witness",
    "WitnessSampling",
    "check_verification",
    "choose_verified",
    "refine",
    "verify",
]
