"""What candidates of a search that extract from the same rows need to work out only once.

The memory belongs to the black box that a search hands to all its candidates, so that nothing can
be shared between black boxes; keys hold a digest of the rows and their answers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from skescore.extractors._base import Extraction
from skescore.extractors._oracle import RememberingBlackBox, ResultMemory

T = TypeVar("T")
#: Results of one partition that are kept for different intervals of the threshold.
_MOST_INTERVALS = 64


class Sharing:
    """The part of a black box's memory that is about some rows and their answers.

    Parameters
    ----------
    memory : ResultMemory
        Where results are kept.
    about : hashable
        What tells these rows and answers from others.
    """

    def __init__(self, memory: ResultMemory, about: Hashable) -> None:
        self._memory, self._about = memory, about

    @classmethod
    def of(cls, extraction: Extraction) -> Sharing | None:
        """Give what an extraction can share.

        Parameters
        ----------
        extraction : Extraction
            The rows, the answers and the oracle.

        Returns
        -------
        Sharing or None
            None if the black box is not one that a search hands out, or the rows have no digest.
        """
        black_box, rows = extraction.oracle.estimator, extraction.oracle.first_question
        if not isinstance(black_box, RememberingBlackBox) or rows is None:
            return None
        domain = extraction.settings["domain"]
        n_classes = None if extraction.classes is None else len(extraction.classes)
        answers = digest(extraction.answers, np.asarray([domain.lower, domain.upper], dtype=float))
        return cls(black_box.memory, (rows, answers, extraction.X.shape, n_classes))

    def narrowed(self, about: Hashable) -> Sharing:
        """Give the part of this part that is about something more.

        Parameters
        ----------
        about : hashable
            What tells it from the rest.

        Returns
        -------
        Sharing
            Its keys are its own.
        """
        return Sharing(self._memory, (self._about, about))

    def get(self, key: Hashable) -> Any:
        """Give what is kept under a key, or None."""
        return self._memory.get((self._about, key))

    def put(self, key: Hashable, value: Any) -> None:
        """Keep something that nobody will change."""
        self._memory.put((self._about, key), value)

    def get_for_threshold(self, key: Hashable, threshold: float) -> Any:
        """Give a result that any threshold near this one leads to, or None.

        Parameters
        ----------
        key : hashable
            All else that decides the result.
        threshold : float
            The threshold.

        Returns
        -------
        object or None
            What :meth:`put_for_threshold` kept.
        """
        for above, up_to, value in self.get(key) or ():
            if above < threshold <= up_to:
                return value
        return None

    def put_for_threshold(self, key: Hashable, watched: WatchedThreshold, value: Any) -> None:
        """Keep a result for all thresholds that lead to it.

        Parameters
        ----------
        key : hashable
            All else that decides the result.
        watched : WatchedThreshold
            The threshold that was used.
        value : object
            The result.
        """
        known = (self.get(key) or ())[-_MOST_INTERVALS + 1 :]
        self.put(key, (*known, (watched.above, watched.up_to, value)))


class WatchedThreshold:
    """A threshold that notes how far it could move without changing any comparison.

    A computation that uses a threshold in comparisons alone goes the same way for all thresholds
    in the interval, to the last bit.

    Parameters
    ----------
    value : float
        The threshold.

    Attributes
    ----------
    above, up_to : float
        Every threshold that is greater than `above` and at most `up_to` compares alike.

    Examples
    --------
    >>> import numpy as np
    >>> threshold = WatchedThreshold(0.5)
    >>> (np.array([0.1, 0.4, 0.7]) < threshold).tolist(), 0.6 >= threshold
    ([True, True, False], True)
    >>> threshold.above, threshold.up_to
    (0.4, 0.6)
    """

    #: Arrays leave the comparison to this class.
    __array_ufunc__ = None

    def __init__(self, value: float) -> None:
        self._value = value
        self.above, self.up_to = -math.inf, math.inf

    def __gt__(self, numbers: Any) -> Any:
        """Compare ``numbers < threshold``."""
        numbers = np.asarray(numbers)
        below = numbers < self._value
        # NaN is never below, whatever the threshold; it must not narrow the interval.
        self.above = float(np.fmax.reduce(numbers[below], initial=self.above))
        self.up_to = float(np.fmin.reduce(numbers[~below], initial=self.up_to))
        return below

    def __le__(self, number: float) -> bool:
        """Compare ``number >= threshold``."""
        if number >= self._value:
            if number < self.up_to:
                self.up_to = number
            return True
        if number > self.above:
            self.above = number
        return False


def once(sharing: Sharing | None, key: Hashable, make: Callable[[], T]) -> T:
    """Give what is shared under a key, made now if it is not there.

    Parameters
    ----------
    sharing : Sharing or None
        None shares nothing.
    key : hashable
        What decides the result, beside rows and answers.
    make : callable
        Makes it.

    Returns
    -------
    object
        The result, which nobody may change.
    """
    if sharing is None:
        return make()
    found = sharing.get(key)
    if found is None:
        found = make()
        sharing.put(key, found)
    return found


def digest(*arrays: np.ndarray) -> bytes:
    """Digest the content, type and shape of arrays."""
    result = hashlib.sha256()
    for array in arrays:
        result.update(f"{array.dtype}{array.shape}".encode())
        result.update(np.ascontiguousarray(array).data)
    return result.digest()
