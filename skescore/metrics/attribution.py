"""Measures of attributions: beside the truth, beside people's marks, and beside the model itself.

Where the truth is known, :func:`jensen_shannon_divergence` and :func:`top_k_accuracy` compare with
it; where people marked what matters, :func:`plausibility` does; and :func:`faithfulness` asks the
black box what happens without the features that an attribution names.
"""

from __future__ import annotations

from skescore.metrics._attribution_agreement import attribution_agreement, attribution_complexity
from skescore.metrics._attribution_faithfulness import FAITHFULNESS, faithfulness
from skescore.metrics._attribution_maps import (
    jensen_shannon_divergence,
    top_k_accuracy,
    zero_maps,
)
from skescore.metrics._attribution_plausibility import PLAUSIBILITY, plausibility
from skescore.metrics._attribution_robustness import (
    attribution_infidelity,
    attribution_sensitivity,
)
from skescore.metrics._attribution_text import text_tokens

__all__ = [
    "FAITHFULNESS",
    "PLAUSIBILITY",
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
