"""Editing: change rules by hand, measure every change, and log it so that it can be replayed.

A :class:`RuleEditor` applies edits and reports the :class:`Effect` of each. :func:`replay` applies
its :class:`EditLog` again, with the same result.
"""

from skescore.editing._canonical import canonical_json
from skescore.editing._editor import RuleEditor
from skescore.editing._edits import EDITS, WHOLE_EDITS, apply_edit
from skescore.editing._effect import (
    Effect,
    EffectRows,
    FigureChange,
    predict_rows,
)
from skescore.editing._log import EditLog, EditLogError, EditRecord, replay, rules_sha256
from skescore.editing._paired import (
    CONFIDENCE,
    SHARE_OF_CHANGE,
    PairedDifference,
    difference_of_means,
    difference_of_shares,
)
from skescore.editing._price import Price, price
from skescore.editing._reachability import contradictions, unreachable_rules
from skescore.editing._refit import Reoptimization, refit
from skescore.editing._suggestions import Suggestion, suggest
from skescore.editing._written_edits import WrittenEdits

__all__ = [
    "CONFIDENCE",
    "EDITS",
    "SHARE_OF_CHANGE",
    "WHOLE_EDITS",
    "EditLog",
    "EditLogError",
    "EditRecord",
    "Effect",
    "EffectRows",
    "FigureChange",
    "PairedDifference",
    "Price",
    "Reoptimization",
    "RuleEditor",
    "Suggestion",
    "WrittenEdits",
    "apply_edit",
    "canonical_json",
    "contradictions",
    "difference_of_means",
    "difference_of_shares",
    "predict_rows",
    "price",
    "refit",
    "replay",
    "rules_sha256",
    "suggest",
    "unreachable_rules",
]
