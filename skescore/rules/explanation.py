"""Why a rule set answers a row as it does, and what would change its answer.

An explanation is made of what the rules themselves say: which of them hold, who among them answers,
and the least change of the row found that gets another answer. Every such change is put to
:meth:`RuleSet.predict` before it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._text import listed
from skescore.rules import voting
from skescore.rules._checks import python_value
from skescore.rules._counterfactuals import Answers, nearest_change, used_features
from skescore.rules.conditions import AtLeast, Condition
from skescore.rules.data import Table
from skescore.rules.formatting import feature_name, format_label, format_number
from skescore.rules.rule import LinearOutput

if TYPE_CHECKING:
    from skescore.rules.ruleset import RuleSet
