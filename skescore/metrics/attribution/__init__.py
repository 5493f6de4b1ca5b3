"""Measures of attributions: beside the truth, beside people's marks, and beside the model itself.

Where the truth is known, :func:`jensen_shannon_divergence` and :func:`top_k_accuracy` compare with
it; where people marked what matters, :func:`plausibility` does; and :func:`faithfulness` queries
the black box without the features that an attribution names.
"""

from __future__ import annotations

from skescore.metrics.attribution._faithfulness import FAITHFULNESS, faithfulness
from skescore.metrics.attribution._maps import (
    attribution_agreement,
    attribution_complexity,
    jensen_shannon_divergence,
    top_k_accuracy,
    zero_maps,
)
from skescore.metrics.attribution._model import Target
from skescore.metrics.attribution._plausibility import PLAUSIBILITY, plausibility
from skescore.metrics.attribution._removal import Removal, text_tokens
from skescore.metrics.attribution._robustness import (
    attribution_infidelity,
    attribution_sensitivity,
)

__all__ = [
    "FAITHFULNESS",
    "PLAUSIBILITY",
    "Removal",
    "Target",
    "attribution_agreement",
    "attribution_complexity",
    "attribution_infidelity",
    "attribution_sensitivity",
    "faithfulness",
    "jensen_shannon_divergence",
    "plausibility",
    "text_tokens",
    "top_k_accuracy",
    "zero_maps",
]
