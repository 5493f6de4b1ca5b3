"""Requests of scorers for sample weights in scikit-learn's metadata routing."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.utils.metadata_routing import MetadataRequest


class AcceptsWeights:
    """Mixin of scorers that have a ``name`` and accept ``sample_weight``."""

    _requests: dict[str, Any]

    def _accept_sample_weight(self) -> bool:
        return True

    def set_score_request(self, **requests: Any) -> Self:
        """Set whether metadata routing passes ``sample_weight``: True, False or an alias.

        Returns
        -------
        scorer
            Copy with the request; ready-made scorers are not modified.

        Raises
        ------
        TypeError, ValueError
            If other metadata is requested, or a request is neither a bool nor a name.
        """
        unknown = set(requests) - {"sample_weight"}
        if unknown:
            name = getattr(self, "name", type(self).__name__)
            raise TypeError(f"{name} accepts only sample_weight, got {sorted(unknown)}.")
        clone = copy.copy(self)
        clone._requests = self._requests | requests
        clone.get_metadata_routing()  # raises an error for an invalid request
        return clone

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests.

        Returns
        -------
        MetadataRequest
            Request for scikit-learn's metadata routing.
        """
        routing = MetadataRequest(owner=self)
        routing.score.add_request(param="sample_weight", alias=self._requests.get("sample_weight"))
        return routing
