"""Certificates: between which bounds the best possible score lies, beside that of given rules."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

import numpy as np

from skescore._io import json_of
from skescore._text import plural
from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_number,
    one_dimension,
    python_value,
    row_weights,
)
from skescore.certificates._bounds import most_weighted_f1
from skescore.metrics import METRICS, prediction_loss, prediction_performance
from skescore.metrics._prediction import centered
from skescore.optimal import (
    Cuts,
    F1Bound,
    Frontier,
    candidate_cuts,
    most_f1_of_trees,
    optimal_lists,
    optimal_trees,
)
from skescore.rules import Fallback, RowTable, RuleSet
from skescore.scorers import (
    SCORE_SPECS,
    RuleScorer,
    ScoreSpec,
    evaluate_rules,
    get_rule_scorer,
    make_score_scorer,
)

JSON_FORMAT = "skescore.Certificate"
_VERSION = 1
KINDS = ("tree", "list")
#: What rules were compared with, if not with labels.
_BLACK_BOX = "the black box's predictions"
#: Which loss a metric follows from.
_LOSS_OF = {
    "accuracy": "errors",
    "f1_weighted": "errors",
    "r2": "squared_error",
    "mean_squared_error": "squared_error",
    "root_mean_squared_error": "squared_error",
    "mean_absolute_error": "absolute_error",
}
#: Unless the caller says otherwise, no more rules are asked about; and how many where the score
#: does not tell, as it calls any number of rules perfect.
_MOST_RULES, _USUAL_RULES = 12, 6
#: From so many classes on, errors bound the weighted F1 badly.
_MANY_CLASSES = 6
#: Nodes of the search for good rules, before anything is proven of better ones.
_FIRST_NODES = 200


class Interval(NamedTuple):
    """The best score of rules of a kind: it is from `found` to `possible`, where greater is better.

    Of a score where less is better, `possible` is the lesser number.
    """

    found: float
    possible: float


class CertificateSettings(TypedDict):
    """What a certificate was made for, beside the name of the score.

    Attributes
    ----------
    metric : str
        What the score takes of the predictions, such as ``"f1_weighted"``.
    completeness : {"volume", "instances"}
        How the completeness of the given rules is measured.
    weights : dict of str to float
        The score's weights.
    cuts_per_feature : int or None
        Most cuts of a number, beside those of the given rules; None for all between neighboring
        values.
    stated : bool
        Whether the cuts were stated one by one.
    """

    metric: str
    completeness: str
    weights: dict[str, float]
    cuts_per_feature: int | None
    stated: NotRequired[bool]


class CertifiedRows(TypedDict):
    """The rows that a certificate speaks of.

    Attributes
    ----------
    n_rows : int
        How many.
    task : {"classification", "regression"}
        What is predicted of them.
    reference : str
        What the rules were compared with: the name of the labels, or
        ``"the black box's predictions"``.
    weighted : bool
        Whether rows have weights.
    checksum : str
        See :func:`skescore.certificates.rows_checksum`.
    class_weights : list of float
        Of classification: the rows of each class, or their weight, by the sorted labels.
    squares : float
        Of regression: the weighted sum of squares around the mean.
    """

    n_rows: int
    task: str
    reference: str
    weighted: bool
    checksum: str
    class_weights: NotRequired[list[float]]
    squares: NotRequired[float]


class GivenRules(TypedDict):
    """The rules that a certificate compares with the best possible ones.

    Attributes
    ----------
    n_rules : int
        How many there are.
    completeness_volume, completeness_instances : float
        The share of the volume, and of the rows, for which some rule holds.
    metrics : dict of str to float
        What scores take of the predictions, by the name of the metric and of how it takes rows
        without a rule, such as ``"accuracy penalize"``.
    rules : RuleSet or None
        Themselves, if they predict these rows as they are.
    """

    n_rules: int
    completeness_volume: float
    completeness_instances: float
    metrics: dict[str, float]
    rules: RuleSet | None


class HeldOut(TypedDict):
    """The best rules found beside the given ones, on rows that neither was made of.

    Attributes
    ----------
    kind : {"tree", "list"}
        The kind of the best rules found.
    n_rules : int
        How many of them there are at most.
    best, given : list of float
        The score on each split of the search, as its formula gives it: of the best rules, found
        anew on the training rows, and of the given ones, extracted anew.
    """

    kind: str
    n_rules: int
    best: list[float]
    given: list[float]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof of how far rules are from the best possible ones on some rows; see :func:`certify`.

    It speaks of one score with its weights. :meth:`with_score` gives the same proof for others.

    Parameters
    ----------
    frontiers : sequence of Frontier
        For each kind of rules the least loss of every size, between two bounds.
    measured : sequence of sequence of dict of str to float
        For each of these, per size, the metrics of the rules found and their ``"n_rules"``.
    score : str
        The name of the score that it speaks of.
    settings : CertificateSettings
        Its metric, completeness and weights, and the cuts.
    rows : CertifiedRows
        What it says of the rows.
    given : GivenRules
        The rules that were given.
    held_out : HeldOut, optional
        What the best rules found are worth on other rows; see :meth:`with_held_out`.
    f1_bounds : sequence of F1Bound, default=()
        Of trees of some sizes: what weighted F1 they can have, where that is less than what follows
        from the errors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skescore.certificates import certify
    >>> from skescore.extractors import CARTExtractor
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> extractor = CARTExtractor(
    ...     RandomForestClassifier(20, random_state=0), max_leaf_nodes=3, random_state=0
    ... ).fit(X, y)
    >>> certificate = certify(extractor, X, kinds=["tree"], time_limit=None)
    >>> round(certificate.gap(), 4), round(certificate.with_score("ice", phi=5).gap(), 4)
    (0.0, 0.0003)
    """

    frontiers: tuple[Frontier, ...]
    measured: tuple[tuple[Mapping[str, float], ...], ...]
    score: str
    settings: CertificateSettings
    rows: CertifiedRows
    given: GivenRules
    held_out: HeldOut | None = None
    f1_bounds: tuple[F1Bound, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of rules that it speaks of."""
        return tuple(frontier.kind for frontier in self.frontiers)

    def with_score(self, score: str | None = None, **weights: float) -> Certificate:
        """Give the same proof for another score or other weights; no search is needed.

        Parameters
        ----------
        score : str, optional
            Another score than that of the certificate.
        **weights : float
            Its weights; those of the certificate's own score are kept otherwise.

        Returns
        -------
        Certificate
            The same bounds, and what follows for that score.

        Raises
        ------
        ValueError
            If the score is unknown, or follows from another loss than the one that is bounded.
        """
        name = self.score if score is None else score.removeprefix("neg_")
        spec = SCORE_SPECS.get(name)
        if spec is None:
            raise ValueError(f"score must be one of {list(SCORE_SPECS)}, got {score!r}.")
        known = self.settings["weights"] if name == self.score else {}
        metric = self.settings["metric"] if name == self.score else spec.metric(self.rows["task"])
        loss = _LOSS_OF.get(metric)
        if loss != self.frontiers[0].loss:
            raise ValueError(
                f"{spec.label} follows from {str(loss).replace('_', ' ')}s here, but the "
                f"certificate is about {self.frontiers[0].loss.replace('_', ' ')}s. Make one with "
                f"certify(..., scoring={name!r})."
            )
        settings = self.settings | {
            "metric": metric,
            "weights": dict(spec.check_weights({**known, **weights})),
        }
        held_out = self.held_out if (name, settings) == (self.score, self.settings) else None
        return replace(
            self, score=name, settings=cast(CertificateSettings, settings), held_out=held_out
        )

    def with_held_out(
        self,
        search: Any,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        time_limit: float | None = 60.0,
        max_nodes: int | None = None,
    ) -> Certificate:
        """Measure the best rules found where the search measured its candidates.

        Rules with the fewest errors on some rows need not be better on others. So rules of the
        same kind and size are found on the training rows of each split of the search, in place of
        the black box as all its candidates are, and scored on the held-out rows.

        Parameters
        ----------
        search : ExtractorSearchCV
            Fitted; its winner is what the certificate is about.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            What the search was fitted with.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, if it was fitted with some.
        time_limit : float, optional, default=60.0
            Seconds for the rules of all splits, beside the black boxes' own; None for none.
        max_nodes : int, optional
            The same with a number of nodes for each split.

        Returns
        -------
        Certificate
            With :attr:`held_out`, and a sentence of it.
        """
        spec = self._asked.spec
        kind = max(self.kinds, key=lambda k: spec.signed(self.interval(k).found))
        best = self.best_rules(kind)
        size = max(2, len(best) if best is not None else self._frontier(kind)[0].sizes[-1])
        n_splits = max(1, max((len(c.folds) for c in search.candidates_), default=1))
        params: dict[str, Any] = {
            "cuts_per_feature": self.settings["cuts_per_feature"],
            "n_features_to_select": None,
            "criterion": self.frontiers[0].loss,
            "time_limit": None if time_limit is None else time_limit / n_splits,
            "max_nodes": max_nodes if max_nodes or time_limit is None else 10**9,
        }
        if kind == "tree":
            params["max_leaf_nodes"] = size
        else:
            most = self._frontier(kind)[0].space["max_conditions"]
            params |= {"max_rules": size, "max_conditions": most}
        weights: dict[str, Any] = dict(self.settings["weights"])
        scorer = make_score_scorer(
            self.score,
            metric=self.settings["metric"],
            completeness=self.settings["completeness"],
            reference="black_box" if self.rows["reference"] == _BLACK_BOX else "data",
            **weights,
        )
        candidates = [
            search.leaderboard_.iloc[0],
            search.make_candidate({"extractor": f"optimal-{kind}", "params": params}),
        ]
        given, found = search.held_out_scores(
            candidates, X, y, scoring=scorer, sample_weight=sample_weight
        )
        told: HeldOut = {
            "kind": kind,
            "n_rules": size,
            "best": [float(spec.signed(value)) for value in found],
            "given": [float(spec.signed(value)) for value in given],
        }
        return replace(self, held_out=told)

    def _held_out_sentence(self, told: HeldOut) -> str:
        spec = SCORE_SPECS[self.score]
        best, given = (float(np.mean(told[name])) for name in ("best", "given"))
        what = f"the best {told['kind']} of at most {plural(told['n_rules'], 'rule')}"
        figures = (
            f"On rows held out, {what}, found anew on the training rows of each of "
            f"{plural(len(told['best']), 'split')}, has {spec.label} {best:.4f} on average, rules "
            f"made as the given ones {given:.4f}"
        )
        if np.isnan([best, given]).any():
            return f"{figures}."
        if spec.signed(best) > spec.signed(given):
            return f"{figures}: it is better there, too."
        return f"{figures}: optimal here is not better there."

    @property
    def _asked(self) -> _Asked:
        settings = self.settings
        return _Asked(SCORE_SPECS[self.score], settings["metric"], settings["weights"])

    def _frontier(self, kind: str) -> tuple[Frontier, tuple[Mapping[str, float], ...]]:
        check_choice("kind", kind, self.kinds)
        at = self.kinds.index(kind)
        return self.frontiers[at], self.measured[at]

    def given_prediction(self) -> float:
        """What the score takes of the given rules' predictions.

        Returns
        -------
        float
            A performance or a loss, as the score has it.
        """
        asked = self._asked
        return asked.prediction(self.given["metrics"][f"{asked.metric} {asked.spec.uncovered}"])

    def given_score(self) -> float:
        """The score of the rules that were given, on these rows.

        Returns
        -------
        float
            As its formula gives it, not negated.
        """
        share = _share(self.given, self.settings["completeness"])
        return self._asked.value(self.given_prediction(), self.given["n_rules"], share)

    def given_loss(self) -> float:
        """The loss of the rules that were given, as the frontiers count it.

        Returns
        -------
        float
            Rows without a rule are counted as wrong, or as predicted by the mean.
        """
        total = self.frontiers[0].total_weight
        for key, value in self.given["metrics"].items():
            metric, policy = key.split(" ")
            if policy != "penalize" or metric == "f1_weighted":
                continue
            if metric == "accuracy":
                return (1 - value) * total
            if metric == "r2":
                return (1 - value) * self.rows["squares"]
            return total * (value**2 if metric == "root_mean_squared_error" else value)
        raise ValueError("The certificate does not tell the loss of the given rules.")

    def predictions(self, kind: str) -> tuple[Interval, ...]:
        """Find the bounds of what the score takes of the predictions, for each number of rules.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        tuple of Interval
            For at most 1, 2, 3, ... rules: that of the rules found, and what none is better than.
        """
        asked = self._asked
        frontier, measured = self._frontier(kind)
        better = max if asked.spec.prediction == "performance" else min
        bounds = {bound.size: bound for bound in self._bounds(kind)}
        result = []
        for size, loss, metrics in zip(
            frontier.sizes, frontier.lower.tolist(), measured, strict=True
        ):
            found = asked.prediction(metrics[asked.metric])
            most = asked.most(loss, size, self.rows, frontier.total_weight)
            if size in bounds:
                found = better(found, asked.prediction(bounds[size].found))
                most = min(most, bounds[size].most)
            possible = asked.prediction(most)
            result.append(Interval(found, better(found, possible)))
        return tuple(result)

    def corridor(self, kind: str) -> tuple[Interval, ...]:
        """Find the bounds of the best score, for each number of rules.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        tuple of Interval
            For 1, 2, 3, ... complete rules: the score of those found, and the best possible one.
            Where fewer rules are as good, rules that never answer stand for the rest.
        """
        value = self._asked.value
        return tuple(
            Interval(*(value(prediction, size, 1.0) for prediction in bounds))
            for size, bounds in enumerate(self.predictions(kind), start=1)
        )

    def interval(self, kind: str) -> Interval:
        """Find the bounds of the best score that complete rules of a kind can have.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        Interval
            Some rules have the score `found`, none has a better one than `possible`.
        """
        found = self._found(kind)
        best = max if self._asked.spec.greater_is_better else min
        return Interval(best(found), best([*(i.possible for i in self.corridor(kind)), *found]))

    def _bounds(self, kind: str) -> tuple[F1Bound, ...]:
        """Bounds of what the score takes of trees' predictions."""
        return self.f1_bounds if (kind, self._asked.metric) == ("tree", "f1_weighted") else ()

    def _found(self, kind: str) -> list[float]:
        """The scores of the rules found."""
        asked = self._asked
        told = [(m[asked.metric], m["n_rules"]) for m in self._frontier(kind)[1]]
        told += [(b.found, len(b.rules)) for b in self._bounds(kind) if b.rules is not None]
        return [asked.value(asked.prediction(value), size, 1.0) for value, size in told]

    def any_size(self, kind: str) -> bool:
        """Return whether more rules than were asked about cannot win, were they without error.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        bool
            Whether :meth:`interval` holds for rules of any number.
        """
        asked = self._asked
        perfect = 0.0 if asked.spec.prediction == "loss" else 1.0
        more = asked.value(perfect, self._frontier(kind)[0].sizes[-1] + 1, 1.0)
        found = self.interval(kind).found
        return bool(asked.spec.signed(more) <= asked.spec.signed(found))

    def gap(self, kind: str | None = None) -> float:
        """Find by how much better than the given rules any of a kind can be at most.

        Parameters
        ----------
        kind : {"tree", "list"}, optional
            The kind of rules; by default any of the certificate.

        Returns
        -------
        float
            0 or more, in units of the score.
        """
        spec = self._asked.spec
        own = spec.signed(self.given_score())
        kinds = self.kinds if kind is None else (kind,)
        best = max(spec.signed(self.interval(k).possible) for k in kinds)
        return float(max(0.0, best - own))

    def best_rules(self, kind: str) -> RuleSet | None:
        """Give the rules of a kind with the best score that were found.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        RuleSet or None
            None where only their loss is known.
        """
        values = [self._asked.spec.signed(value) for value in self._found(kind)]
        rules = [*self._frontier(kind)[0].rules]
        rules += [bound.rules for bound in self._bounds(kind) if bound.rules is not None]
        return rules[int(np.argmax(values))]

    def _space(self, frontier: Frontier) -> str:
        """A kind and its space in words."""
        size = frontier.sizes[-1]
        most = "1 leaf" if size == 1 else f"{size} leaves"
        if frontier.kind == "list":
            most = plural(size, "rule")
            conditions = frontier.space.get("max_conditions")
            if conditions is not None:
                most += f" with at most {plural(conditions, 'condition')} each"
        per_feature = self.settings.get("cuts_per_feature")
        if self.settings.get("stated"):
            known = frontier.space["cuts"]
            n_cuts = sum(len(cuts) for cuts in known["thresholds"].values())
            n_cuts += sum(len(values) for values in known["categories"].values())
            return f"decision {frontier.kind} of at most {most} over {n_cuts} stated cuts"
        cuts = (
            "all cuts between neighboring values"
            if per_feature is None
            else f"{per_feature} cuts per feature and those of the rules given"
        )
        return f"decision {frontier.kind} of at most {most} over {cuts}"

    def to_text(self) -> str:
        """Say what is proven, one sentence for each kind of rules.

        Returns
        -------
        str
            It ends with what the certificate does not speak of.
        """
        spec = SCORE_SPECS[self.score]
        own = self.given_score()
        rows = plural(self.rows["n_rows"], "row")
        weighted = " with their weights" if self.rows["weighted"] else ""
        lines = [
            f"On these {rows}{weighted}, against {self.rows['reference']}, "
            f"{plural(self.given['n_rules'], 'rule')} have {spec.label} {own:.4f}."
        ]
        for frontier in self.frontiers:
            kind = frontier.kind
            interval, gap = self.interval(kind), self.gap(kind)
            beyond = " (nor with more)" if self.any_size(kind) else ""
            known = interval.found == interval.possible
            best = "the best" if known else "the best found"
            found = f"; {best} has {spec.label} {interval.found:.4f}"
            if gap <= 0:
                lines.append(f"No {self._space(frontier)}{beyond} is better{found}.")
            else:
                lines.append(
                    f"A {self._space(frontier)}{beyond} is better by at most "
                    f"{_rounded_up(gap)} {spec.label}{found}."
                )
        share = _share(self.given, self.settings["completeness"])
        if share < 1:
            lines.append(
                f"The certificate speaks of rules that cover everything; these cover {share:.3f}."
            )
        lines.append("It is about these rows, not about new ones.")
        if self.held_out is not None:
            lines.append(self._held_out_sentence(self.held_out))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """Show the sentences, and the corridor as a table."""
        parts = [f"<p>{escape(self.to_text()).replace(chr(10), '<br>')}</p>"]
        for frontier in self.frontiers:
            rows = "".join(
                f"<tr><td>{size}</td><td>{low:g}</td><td>{high:g}</td></tr>"
                for size, low, high in zip(
                    frontier.sizes, frontier.lower, frontier.upper, strict=True
                )
            )
            loss = escape(frontier.loss.replace("_", " "))
            parts.append(
                f"<table><caption>{frontier.kind}: {loss}</caption><tr><th>rules</th>"
                f"<th>at least</th><th>found</th></tr>{rows}</table>"
            )
        return "".join(parts)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write the certificate, with the rules that it speaks of.

        Parameters
        ----------
        indent : int, optional
            Spaces per level; None for one line.

        Returns
        -------
        str
            What :meth:`from_json` and :func:`check_certificate` read.
        """
        frontiers = []
        for frontier, measured in zip(self.frontiers, self.measured, strict=True):
            frontiers.append(
                {
                    "kind": frontier.kind,
                    "loss": frontier.loss,
                    "lower": frontier.lower.tolist(),
                    "upper": frontier.upper.tolist(),
                    "status": list(frontier.status),
                    "seconds": frontier.seconds,
                    "total_weight": frontier.total_weight,
                    "space": dict(frontier.space),
                    "measured": [dict(metrics) for metrics in measured],
                    "rules": [_plain_rules(rules) for rules in frontier.rules],
                }
            )
            if frontier.kind == "tree" and self.f1_bounds:
                frontiers[-1]["f1"] = [
                    {**vars(bound), "rules": _plain_rules(bound.rules)} for bound in self.f1_bounds
                ]
        rules = self.given["rules"]
        own = {**self.given, "rules": _plain_rules(rules)}
        content: dict[str, Any] = {
            "format": JSON_FORMAT,
            "version": _VERSION,
            "score": self.score,
            "settings": dict(self.settings),
            "rows": dict(self.rows),
            "given": own,
            "frontiers": frontiers,
        }
        if self.held_out is not None:
            content["held_out"] = dict(self.held_out)
        return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what :meth:`to_json` wrote.

        Parameters
        ----------
        text : str
            The certificate.

        Returns
        -------
        Certificate
            The same. What it says is not checked, see :func:`check_certificate`.

        Raises
        ------
        ValueError
            If the text is no certificate.
        """
        try:
            data = json_of(text, finite=True)
        except ValueError as error:
            raise ValueError(f"text must be a certificate in JSON, but {error}.") from error
        if not isinstance(data, dict) or data.get("format") != JSON_FORMAT:
            raise ValueError(f"text must be a certificate (format {JSON_FORMAT!r}).")
        if data.get("version") != _VERSION:
            raise ValueError(
                f"The certificate is of version {data.get('version')!r}, but this skescore reads "
                f"version {_VERSION}. Upgrade skescore."
            )
        try:
            frontiers = [
                Frontier(
                    part["kind"],
                    part["loss"],
                    tuple(range(1, len(part["lower"]) + 1)),
                    part["lower"],
                    part["upper"],
                    tuple(_ruleset(rules) for rules in part["rules"]),
                    part["total_weight"],
                    part["space"],
                    tuple(part["status"]),
                    part["seconds"],
                )
                for part in data["frontiers"]
            ]
            measured = tuple(tuple(part["measured"]) for part in data["frontiers"])
            own = data["given"] | {"rules": _ruleset(data["given"]["rules"])}
            bounds = [
                F1Bound(**(told | {"rules": _ruleset(told["rules"])}))
                for part in data["frontiers"]
                for told in part.get("f1", ())
            ]
            return cls(
                tuple(frontiers),
                measured,
                data["score"],
                data["settings"],
                data["rows"],
                own,
                data.get("held_out"),
                tuple(bounds),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"The certificate cannot be read, it lacks {error}.") from error


class _Asked(NamedTuple):
    """A score with its metric and weights."""

    spec: ScoreSpec
    metric: str
    weights: Mapping[str, float]

    def prediction(self, value: float) -> float:
        """What the score takes of a metric's value."""
        if self.spec.prediction == "loss" and METRICS[self.metric].greater_is_better:
            return 1 - value
        return value

    def most(self, loss: float, size: int, rows: CertifiedRows, total: float) -> float:
        """The best value of the metric with at least this loss and at most so many rules."""
        if self.metric == "f1_weighted":
            return most_weighted_f1(rows["class_weights"], loss, size)
        if self.metric == "accuracy":
            return 1 - loss / total
        if self.metric == "r2":
            squares = rows["squares"]
            return 1 - loss / squares if squares > 0 else 1.0
        value = loss / total
        return float(np.sqrt(value)) if self.metric == "root_mean_squared_error" else value

    def best(self, measured: Sequence[Mapping[str, float]]) -> float:
        """The best score of rules that cover everything, by their metrics; greater is better."""
        return max(
            self.spec.signed(self.value(self.prediction(m[self.metric]), m["n_rules"], 1.0))
            for m in measured
        )

    def value(self, prediction: float, size: float, share: float) -> float:
        return float(self.spec.value(prediction, size, share, self.weights))


def _share(given: GivenRules, completeness: str) -> float:
    """The given rules' completeness."""
    if completeness == "volume":
        return given["completeness_volume"]
    return given["completeness_instances"]


def _rounded_up(gap: float) -> str:
    """A gap that is said to be no greater."""
    return f"{np.ceil(gap * 1e4 - 1e-9) / 1e4:.4f}"


def _plain_rules(rules: RuleSet | None) -> Any:
    return None if rules is None else json.loads(rules.to_json())


def _ruleset(data: Any) -> RuleSet | None:
    return None if data is None else RuleSet.from_json(json.dumps(data))


def certify(
    search_or_rules: Any,
    X: Any,
    y: Any = None,
    *,
    black_box: Any = None,
    scoring: Any = "ice",
    kinds: Sequence[str] = KINDS,
    max_rules: int | None = None,
    max_conditions: int = 2,
    cuts_per_feature: int | None = 8,
    cuts: Cuts | None = None,
    tolerance: float | None = None,
    time_limit: float | None = 60.0,
    max_nodes: int | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Certificate:
    """Prove how far rules are from the best possible ones on some rows.

    Parameters
    ----------
    search_or_rules : estimator or RuleSet
        A fitted search or extractor, or rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, in the units of the rules.
    y : array-like of shape (n_rows,), optional
        What the rules are to predict; a Series is called by its name. By default what the black box
        predicts.
    black_box : estimator, optional
        A fitted black box, instead of y; by default that of the search or extractor.
    scoring : str or scorer, default="ice"
        The score: a name or a scorer made by :func:`skescore.scorers.make_score_scorer`.
    kinds : sequence of {"tree", "list"}, default=("tree", "list")
        Kinds of rules to compare with.
    max_rules : int, optional
        Most rules to compare with; by default those that can have a better score at all, or 6 where
        more than 12 can.
    max_conditions : {1, 2, 3}, default=2
        Most conditions of a rule in a list.
    cuts_per_feature : int, optional, default=8
        Most cuts of a number, beside those of the given rules; None for all between neighboring
        values.
    cuts : Cuts, optional
        The cuts themselves instead, beside those of the given rules: of fewer features, say.
    tolerance : float, optional
        A gap to the best rules known that is small enough: no more is proven than that none are
        better by more than this, which takes far less time. Other scores and weights then have
        wider gaps. By default as much is proven as time allows.
    time_limit : float, optional, default=60.0
        Seconds after which the bounds are what was proven until then; None for none.
    max_nodes : int, optional
        The same with a number of nodes for each kind, so that the result does not depend on the
        machine.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts.
    n_jobs : int, optional
        Processes for lists.

    Returns
    -------
    Certificate
        The bounds, and what follows for the score.

    Raises
    ------
    ValueError, TypeError
        If a parameter cannot be used, or no bound of the score is known.

    Notes
    -----
    Let L(r) be the proven least loss of r rules and U(r) that of rules found, S(e, r) a score that
    gets no better by e or r. Then the best score is no better than the best S(L(r), r), and no
    worse than the best S(U(r), r). The weighted F1 follows from the errors by
    :func:`most_weighted_f1`. Where a `tolerance` is given and that is too wide for trees of some
    size, their F1 is bounded itself, by :func:`skescore.optimal.most_f1_of_trees`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.certificates import certify
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> made = certify(rules, X, y, scoring="fire", kinds=["tree"], cuts_per_feature=None)
    >>> interval = made.interval("tree")
    >>> round(made.given_score(), 4), round(interval.found, 4), interval.found == interval.possible
    (0.1268, 0.0723, True)
    """
    if isinstance(kinds, str) or not kinds:
        raise ValueError(f"kinds must be a sequence of {KINDS}, got {kinds!r}.")
    for kind in kinds:
        check_choice("kinds", kind, KINDS)
    check_integer("max_rules", max_rules, 1, optional=True)
    check_integer("cuts_per_feature", cuts_per_feature, 1, optional=True)
    check_instance("cuts", cuts, Cuts, optional=True)
    check_number("tolerance", tolerance, 0, optional=True)
    check_number("time_limit", time_limit, 0, optional=True)
    asked, completeness = _read_scoring(scoring)
    target, reference = _reference(search_or_rules, X, y, black_box)
    weights = None if sample_weight is None else row_weights(sample_weight, len(target))
    evaluation = evaluate_rules(search_or_rules, X, target, sample_weight=weights)
    if not len(evaluation.ruleset):
        raise ValueError("search_or_rules holds 0 rules, so there is nothing to certify.")
    task = evaluation.ruleset.task
    target = evaluation.y_true
    metric = asked.metric if asked.metric != "auto" else asked.spec.metric(task)
    if metric not in _LOSS_OF or task not in METRICS[metric].tasks:
        raise ValueError(
            f"scoring takes {metric!r} of the predictions, for which no bound is known. Choose one "
            f"of {', '.join(name for name in _LOSS_OF if task in METRICS[name].tasks)}."
        )
    loss = _LOSS_OF[metric]
    asked = asked._replace(metric=metric)
    given = _given(search_or_rules, evaluation, X, task, loss, metric)
    if max_rules is None:
        max_rules = _sizes_that_can_win(asked, given, completeness)
    names = list(evaluation.ruleset.feature_names)
    columns = getattr(X, "columns", None)
    names = [str(c) for c in columns] if columns is not None else names
    stated = cuts is not None
    if cuts is None:
        cuts = candidate_cuts(X, cuts_per_feature)
    else:
        cuts_per_feature = max(1, *map(len, cuts.thresholds.values()), 1)
    cuts = _with_cuts_of(evaluation.ruleset, cuts, names)
    w = np.ones(len(target)) if weights is None else weights
    rows: CertifiedRows = {
        "n_rows": len(target),
        "task": task,
        "reference": reference,
        "weighted": weights is not None,
        "checksum": rows_checksum(X, target, weights),
    }
    if task == "classification":
        labels, codes = np.unique(np.array(list(map(str, target.tolist()))), return_inverse=True)
        rows["class_weights"] = np.bincount(codes, w, minlength=len(labels)).tolist()
    else:
        some = w > 0
        rows["squares"] = float((w[some] * centered(target[some], w[some]) ** 2).sum())
    frontiers, measured = [], []
    bounds: tuple[F1Bound, ...] = ()
    began = time.monotonic()
    for place, kind in enumerate(kinds):
        options: dict[str, Any] = {
            "loss": loss,
            "max_rules": max_rules,
            "cuts": cuts,
            "sample_weight": weights,
            "feature_names": names,
        }
        solve: Callable[..., Frontier] = optimal_trees
        if kind == "list":
            solve = optimal_lists
            rules = given["rules"]
            usable = rules is not None and list(rules.feature_names) == names
            start = [rules] if usable else []
            options |= {"max_conditions": max_conditions, "n_jobs": n_jobs, "start": start}
        left = None
        if time_limit is not None:
            left = max(0.0, time_limit - (time.monotonic() - began)) / (len(kinds) - place)
        end = math.inf if left is None else time.monotonic() + left
        own, known = asked.spec.signed(_own(asked, given, completeness)), -math.inf
        first = None
        if tolerance is not None:
            first = solve(X, target, **options, max_nodes=_FIRST_NODES, time_limit=left)
            known = max(own, asked.best(_measured(first, X, target, w, task)))
            options["targets"] = _targets(asked, known + tolerance, first, rows)
            if kind == "list":
                options["start"] += [found for found in first.rules if found is not None]
        of_f1 = tolerance is not None and (kind, metric) == ("tree", "f1_weighted")
        share = 1.0
        if of_f1:  # the more classes, the less do errors say
            share = 0.5 if len(rows["class_weights"]) < _MANY_CLASSES else 0.1
        while True:
            frontier = solve(
                X,
                target,
                **options,
                max_nodes=max_nodes,
                time_limit=None if left is None else max(0.0, share * (end - time.monotonic())),
            )
            frontier = frontier if first is None else frontier.with_bounds(first)
            found = _measured(frontier, X, target, w, task)
            before, known = known, max(own, asked.best(found))
            if of_f1 or known >= before or time.monotonic() >= end:
                break
            # Rules with fewer errors have the worse score: more is to be proven.
            first = frontier
            options["targets"] = _targets(asked, known + cast(float, tolerance), first, rows)
        frontiers.append(frontier)
        measured.append(found)
        if of_f1:
            del options["loss"], options["max_rules"], options["targets"]
            bounds = _f1_bounds(
                asked,
                frontiers[-1],
                rows,
                known,
                cast(float, tolerance),
                end,
                max_nodes,
                lambda size, options=options, **more: most_f1_of_trees(
                    X, target, size, **options, **more
                ),
            )
    settings: CertificateSettings = {
        "metric": metric,
        "completeness": completeness,
        "weights": dict(asked.weights),
        "cuts_per_feature": cuts_per_feature,
    }
    if stated:
        settings["stated"] = True
    return Certificate(
        tuple(frontiers), tuple(measured), asked.spec.name, settings, rows, given, None, bounds
    )


def _f1_bounds(
    asked: _Asked,
    frontier: Frontier,
    rows: CertifiedRows,
    known: float,
    tolerance: float,
    end: float,
    max_nodes: int | None,
    solve: Callable[..., F1Bound],
) -> tuple[F1Bound, ...]:
    """Bound the weighted F1 of trees of the sizes whose errors leave too much room.

    At first a few nodes each, for the sake of good trees: the better these are, the less has to be
    proven of all sizes.
    """
    spec = asked.spec
    bounds: dict[int, F1Bound] = {}

    def score(f1: float, size: int) -> float:
        return float(spec.signed(asked.value(asked.prediction(f1), size, 1.0)))

    def enough(size: int) -> float:
        """The greatest F1 that is better by no more than the tolerance."""
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (low, middle) if score(middle, size) > known + tolerance else (middle, high)
        return low

    losses = dict(zip(frontier.sizes, frontier.lower.tolist(), strict=True))
    for first in (True, False):
        open_ = []
        for size, loss in losses.items():
            most = asked.most(loss, size, rows, frontier.total_weight)
            most = min(most, bounds[size].most) if size in bounds else most
            if score(most, size) > known + tolerance + 1e-12:
                open_.append(size)
        finish = end
        if first and math.isfinite(end):
            finish = time.monotonic() + (end - time.monotonic()) / 4
        for place, size in enumerate(open_):
            again = True
            while again:
                left = max(0.0, finish - time.monotonic()) / (len(open_) - place)
                wanted = enough(size)
                bound = solve(
                    size,
                    enough=wanted,
                    time_limit=left if math.isfinite(left) else None,
                    max_nodes=_FIRST_NODES if first else max_nodes,
                )
                before = bounds.get(size, bound)
                best = min(bound, before, key=lambda one: one.most)
                other = max(bound, before, key=lambda one: one.found)
                bounds[size] = replace(best, found=other.found, rules=other.rules)
                if bound.rules is not None:
                    predicted = asked.prediction(bound.found)
                    value = asked.value(predicted, len(bound.rules), 1.0)
                    known = max(known, float(spec.signed(value)))
                again = bound.found > wanted and enough(size) > wanted
    for size, bound in bounds.items():
        if bound.most >= asked.most(losses[size], size, rows, frontier.total_weight):
            bounds[size] = replace(bound, most=1.0, proof={})
    return tuple(bounds[size] for size in sorted(bounds))


def _with_cuts_of(ruleset: RuleSet, cuts: Cuts, names: Sequence[str]) -> Cuts:
    """Cuts, and those of the given rules, so that these are compared with their like."""
    thresholds = {j: set(values) for j, values in cuts.thresholds.items()}
    for rule in ruleset.rules:
        for condition in rule.intervals:
            name = ruleset.feature_names[condition.feature]
            if name not in names or names.index(name) in cuts.categories:
                continue
            known = thresholds.setdefault(names.index(name), set())
            # x < c is x ≤ the number before c, and so on.
            if np.isfinite(condition.upper):
                closed = condition.upper_closed
                known.add(condition.upper if closed else _before(condition.upper))
            if np.isfinite(condition.lower):
                closed = condition.lower_closed
                known.add(_before(condition.lower) if closed else condition.lower)
    merged = {j: tuple(sorted(values)) for j, values in thresholds.items()}
    return replace(cuts, thresholds=merged)


def _before(number: float) -> float:
    return float(np.nextafter(number, -np.inf))


def _read_scoring(scoring: Any) -> tuple[_Asked, str]:
    """The score, its metric and weights, and how completeness is measured."""
    scorer = get_rule_scorer(scoring)
    spec = scorer.spec if isinstance(scorer, RuleScorer) else None
    if spec is None or SCORE_SPECS.get(spec.name) is not spec:
        raise ValueError(
            f"scoring must be one of {list(SCORE_SPECS)} or a scorer of one of them, got "
            f"{scoring!r}."
        )
    settings = scorer.settings
    if settings["size"] != "rules":
        raise ValueError(
            f"scoring must count rules as size, got size={settings['size']!r}; no bound is known."
        )
    metric = settings[spec.prediction]
    completeness = settings.get("completeness", "volume")
    if not isinstance(metric, str) or not isinstance(completeness, str):
        raise ValueError(
            "scoring must take named measures, as no bound is known of a callable, got "
            f"{metric!r} and {completeness!r}."
        )
    weights = spec.check_weights({name: settings[name] for name in spec.weight_names})
    return _Asked(spec, metric.removeprefix("neg_"), weights), completeness


def _reference(model: Any, X: Any, y: Any, black_box: Any) -> tuple[np.ndarray, str]:
    """What rules should predict, and what it is called."""
    if black_box is not None:
        if y is not None:
            raise ValueError("Pass y or black_box, not both: rules are compared with one of them.")
        predict: Callable[[Any], Any] = getattr(black_box, "predict", black_box)
        return one_dimension("The black box's predictions", predict(X)), _BLACK_BOX
    if y is not None:
        name = getattr(y, "name", None)  # of a Series
        return one_dimension("y", y), name if isinstance(name, str) and name else "y"
    oracle = getattr(model, "oracle_", None)
    if oracle is None:
        raise ValueError(
            "y must be passed, or black_box: rules by themselves do not know what they imitate."
        )
    return np.asarray(oracle.query(X)), _BLACK_BOX


def _given(model: Any, evaluation: Any, X: Any, task: str, loss: str, metric: str) -> GivenRules:
    """The rules that were given: their size, and all metrics that scores take of them."""
    wanted = {(metric, policy) for policy in ("ignore", "penalize")}
    for spec in SCORE_SPECS.values():
        known = spec.metric(task)
        if _LOSS_OF.get(known) == loss:
            wanted.add((known, spec.uncovered))
    metrics = {}
    for name, policy in sorted(wanted):
        measure = evaluation.performance if METRICS[name].greater_is_better else evaluation.loss
        metrics[f"{name} {policy}"] = float(measure(name, policy))
    ruleset = evaluation.ruleset
    if ruleset.domain is None:  # as for the completeness by volume
        domain = ruleset.domain_around(evaluation.X, evaluation.sample_weight)
        ruleset = ruleset.replace(domain=domain)
    stand_in = ruleset if ruleset.fallback else ruleset.replace(fallback=Fallback(_any(ruleset)))
    try:
        same = bool((stand_in.predict(X) == evaluation.y_pred)[evaluation.covered].all())
    except (TypeError, ValueError):  # X is not in the units of the rules
        same = False
    return {
        "n_rules": len(ruleset),
        "completeness_volume": evaluation.volume,
        "completeness_instances": evaluation.instances,
        "metrics": metrics,
        "rules": ruleset if same else None,
    }


def _any(ruleset: RuleSet) -> Any:
    """A conclusion that rules could have."""
    return 0.0 if ruleset.task == "regression" else (ruleset.classes or (None,))[0]


def _own(asked: _Asked, given: GivenRules, completeness: str) -> float:
    """The score of the given rules."""
    prediction = asked.prediction(given["metrics"][f"{asked.metric} {asked.spec.uncovered}"])
    return asked.value(prediction, given["n_rules"], _share(given, completeness))


def _targets(asked: _Asked, goal: float, first: Frontier, rows: CertifiedRows) -> list[float]:
    """Per size the least loss with which no rules reach more than the goal; greater is better."""

    def beyond(loss: float, size: int) -> bool:
        most = asked.prediction(asked.most(loss, size, rows, first.total_weight))
        return bool(asked.spec.signed(asked.value(most, size, 1.0)) > goal)

    targets = []
    for size in first.sizes:
        low, high = 0.0, float(first.upper[0])
        if not beyond(low, size):
            high = 0.0
        elif beyond(high, size):
            high = math.inf
        else:
            for _ in range(14):
                middle = (low + high) / 2
                low, high = (middle, high) if beyond(middle, size) else (low, middle)
        targets.append(high)
    return targets


def _sizes_that_can_win(asked: _Asked, given: GivenRules, completeness: str) -> int:
    """The most rules that would be better than the given ones, were they without error."""
    spec = asked.spec
    own = _own(asked, given, completeness)
    perfect = 0.0 if spec.prediction == "loss" else 1.0
    for size in range(2, _MOST_RULES + 1):
        if spec.signed(asked.value(perfect, size + 1, 1.0)) <= spec.signed(own):
            return size
    return _USUAL_RULES


def _measured(
    frontier: Frontier, X: Any, target: np.ndarray, weights: np.ndarray, task: str
) -> tuple[dict[str, float], ...]:
    """The metrics of the rules found."""
    result = []
    for rules in frontier.rules:
        assert rules is not None
        predicted = rules.predict(X)
        metrics = {}
        for name, loss in _LOSS_OF.items():
            if loss == frontier.loss:
                better = METRICS[name].greater_is_better
                measure = prediction_performance if better else prediction_loss
                metrics[name] = measure(
                    target, predicted, metric=name, task=task, sample_weight=weights
                )
        result.append(metrics | {"n_rules": len(rules)})
    return tuple(result)


def rows_checksum(X: Any, y: Any, sample_weight: Any = None) -> str:
    """Give a checksum of rows, of what is to be predicted, and of weights.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        What is to be predicted.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    str
        SHA-256 of the rows, one JSON list each: the values, y and the weight, if there are any.
        Numbers are floats, but for whole ones that are none; what is missing is null.

    Raises
    ------
    ValueError
        If there are not as many rows as values of y and weights.

    Examples
    --------
    >>> from skescore.certificates import rows_checksum
    >>> rows_checksum([[1.5, 2.0]], ["a"])[:12], rows_checksum([[1.5, 2.0]], ["b"])[:12]
    ('790c85a6737f', 'b40580c70086')
    """
    columns = getattr(X, "columns", None)
    names = [str(c) for c in columns] if columns is not None else []
    table = RowTable.of(X, names or [f"x{j}" for j in range(np.shape(X)[1])])
    parts = [table.column(j).tolist() for j in range(len(table.names))]
    parts.append(one_dimension("y", y).tolist())
    if sample_weight is not None:
        parts.append(np.asarray(sample_weight, dtype=float).tolist())
    if len({len(part) for part in parts}) > 1:
        raise ValueError(
            f"X, y and sample_weight must have as many rows each, got {len(table)} rows and "
            f"{', '.join(str(len(part)) for part in parts[len(table.names) :])} of the others."
        )
    digest = hashlib.sha256()
    for row in zip(*parts, strict=True):
        digest.update(json.dumps([_plain(value) for value in row]).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    value = python_value(value)
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    if isinstance(value, int) and number != value:  # beyond 2**53
        return value
    return None if number != number else number
