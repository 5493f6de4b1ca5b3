"""Search for the extractor and the hyper-parameters whose rules score best."""

from skescore.tuning.objective import ExtractorObjective
from skescore.tuning.search import ExtractorSearchCV
from skescore.tuning.spaces import search_space

__all__ = ["ExtractorObjective", "ExtractorSearchCV", "search_space"]
