"""Gaussian mixtures fitted by expectation maximisation, started from k-means.

The same mixtures as scikit-learn's, but for rounding; for some hundred rows its checks take many
times longer than the fit itself. All components are worked on at once, columns in rows, so that
every pass runs along contiguous memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from skescore.extractors.cream._k_means import k_means_labels

#: Steps of expectation maximisation; the likelihood is nearly at its maximum long before. They end
#: as soon as the mean log-likelihood changes by less than this.
_MOST_STEPS, _TOLERANCE = 50, 1e-3
#: Added to the rows of a component, of which there may be none.
_NONE = 10 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted mixture.

    Parameters
    ----------
    log_weights : ndarray of shape (n_components,)
        Logarithms of the components' shares.
    means : ndarray of shape (n_components, n_columns)
        Their centres.
    whiteners : ndarray of shape (n_components, n_columns, n_columns)
        Lower triangular matrices that make a component's deviations from its mean uncorrelated, of
        variance 1.
    """

    log_weights: np.ndarray
    means: np.ndarray
    whiteners: np.ndarray

    def log_joint(self, columns: np.ndarray) -> np.ndarray:
        """Logarithms of the components' densities times their shares.

        Parameters
        ----------
        columns : ndarray of shape (n_columns, n_rows)
            The rows, transposed.

        Returns
        -------
        ndarray of shape (n_components, n_rows)
            The logarithms.
        """
        return self._log_joint(columns - self.means[:, :, None])

    def _log_joint(self, deviations: np.ndarray) -> np.ndarray:
        white = self.whiteners @ deviations
        np.square(white, out=white)
        n_columns = self.means.shape[1]
        volume = np.log(np.einsum("kjj->kj", self.whiteners)).sum(axis=1)
        level = self.log_weights + volume - 0.5 * n_columns * np.log(2 * np.pi)
        return np.asarray(level[:, None] - 0.5 * white.sum(axis=1))

    def components(self, table: np.ndarray) -> np.ndarray:
        """Tell the likeliest component of each row.

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Its number.
        """
        return np.asarray(self.log_joint(np.ascontiguousarray(table.T)).argmax(axis=0))

    def bic(self, table: np.ndarray) -> float:
        """Bayesian information criterion of the mixture on the rows that it was fitted to.

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        float
            The lower the better.
        """
        n_rows, n_columns = table.shape
        joint = self.log_joint(np.ascontiguousarray(table.T))
        per_component = n_columns * (n_columns + 1) // 2 + n_columns + 1
        n_parameters = len(self.means) * per_component - 1
        return float(-2 * _log_sum(joint).sum() + n_parameters * np.log(n_rows))


def fit_mixture(
    table: np.ndarray, n_components: int, added_variance: float, seed: int
) -> Mixture | None:
    """Fit a mixture.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        The rows, at least as many as components.
    n_components : int
        Number of components.
    added_variance : float
        Added to the variance of every column in every component.
    seed : int
        Decides where k-means starts.

    Returns
    -------
    Mixture or None
        None where a component collapsed.
    """
    columns = np.ascontiguousarray(table.T)
    labels = k_means_labels(table, n_components, seed)
    shares = (labels == np.arange(n_components)[:, None]).astype(float)
    mixture, deviations = _maximised(columns, shares, added_variance)
    likelihood = -np.inf
    for _ in range(_MOST_STEPS):
        if mixture is None:
            return None
        joint = mixture._log_joint(deviations)
        total = _log_sum(joint)
        joint -= total
        mixture, deviations = _maximised(columns, np.exp(joint, out=joint), added_variance)
        before, likelihood = likelihood, float(total.mean())
        if abs(likelihood - before) < _TOLERANCE:
            break
    return mixture


def _maximised(
    columns: np.ndarray, shares: np.ndarray, added_variance: float
) -> tuple[Mixture | None, np.ndarray]:
    """The likeliest mixture, given each component's share in each row; deviations from its means.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
        The rows, transposed.
    shares : ndarray of shape (n_components, n_rows)
        Of each row they add up to 1.
    added_variance : float
        Added to all variances.
    """
    n_rows = shares.sum(axis=1) + _NONE
    means = (shares @ columns.T) / n_rows[:, None]
    deviations = columns - means[:, :, None]
    weighted = deviations * np.sqrt(shares)[:, None]
    covariances = weighted @ weighted.transpose(0, 2, 1)
    covariances /= n_rows[:, None, None]
    np.einsum("kjj->kj", covariances)[...] += added_variance
    if not np.isfinite(covariances).all():
        return None, deviations
    whiteners = np.empty_like(covariances)
    for number, covariance in enumerate(covariances):
        root, indefinite = lapack.dpotrf(covariance, lower=1)
        if indefinite:
            return None, deviations
        whiteners[number], singular = lapack.dtrtri(root, lower=1)
        if singular:
            return None, deviations
    return Mixture(np.log(n_rows / n_rows.sum()), means, whiteners), deviations


def _log_sum(logarithms: np.ndarray) -> np.ndarray:
    """Logarithm of the sum over components."""
    largest = logarithms.max(axis=0)
    return np.asarray(largest + np.log(np.exp(logarithms - largest).sum(axis=0)))
