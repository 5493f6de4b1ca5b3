"""Where to look: the hyper-parameters of every extractor, their ranges, and what to try first."""

from skescore.tuning.spaces._space import SearchSpace, as_search_space
from skescore.tuning.spaces._spaces import search_space, starting_points

__all__ = ["SearchSpace", "as_search_space", "search_space", "starting_points"]
