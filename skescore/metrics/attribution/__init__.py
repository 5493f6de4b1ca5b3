"""Metrics of attributions: agreement with a known truth, with human rationales, and with the model.

:func:`jensen_shannon_divergence` and :func:`top_k_accuracy` compare attributions with a known
truth, :func:`plausibility` compares them with human rationales. :func:`faithfulness` queries the
black box on rows without the most important features; :func:`removal_curves` computes insertion
and deletion curves.
"""

from __future__ import annotations

from skescore.metrics.attribution._faithfulness import (
    FAITHFULNESS,
    Rationales,
    RemovalCurves,
    faithfulness,
    removal_curves,
)
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
    "Rationales",
    "Removal",
    "RemovalCurves",
    "Target",
    "attribution_agreement",
    "attribution_complexity",
    "attribution_infidelity",
    "attribution_sensitivity",
    "faithfulness",
    "jensen_shannon_divergence",
    "plausibility",
    "removal_curves",
    "text_tokens",
    "top_k_accuracy",
    "zero_maps",
]
