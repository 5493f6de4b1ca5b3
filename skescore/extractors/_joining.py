"""Joining boxes that lie side by side and conclude the same."""

from __future__ import annotations

import numpy as np


def join_touching(
    lower: np.ndarray, upper: np.ndarray, outputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Join boxes of one output that share a whole face, as long as there are any; in place.

    Unions take the place of their first box; gives that box of each, and the union of each box.
    """
    part_of = np.arange(len(lower))
    done = False
    while not done:
        done = True
        for b in range(len(lower)):
            if part_of[b] != b:
                continue
            differs = (lower != lower[b]) | (upper != upper[b])
            along = differs.argmax(axis=1)
            meets = (upper[b, along] == lower[np.arange(len(lower)), along]) | (
                lower[b, along] == upper[np.arange(len(lower)), along]
            )
            alike = (part_of == np.arange(len(lower))) & (outputs == outputs[b])
            others = np.flatnonzero(alike & meets & (differs.sum(axis=1) == 1))
            if len(others):
                c = others[0]
                lower[b] = np.minimum(lower[b], lower[c])
                upper[b] = np.maximum(upper[b], upper[c])
                part_of[part_of == c] = b
                done = False
    return np.unique(part_of, return_inverse=True)
