"""Certificates: proven bounds of the best possible score, compared with the given rules' score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

import numpy as np

from skescore._html import notebook_view, table_html, text_html
from skescore._io import json_of
from skescore._text import plural
from skescore._validation import check_choice
from skescore.certificates._check import METRIC_NAMES, SCHEMA
from skescore.certificates._problem import (
    BLACK_BOX_REFERENCE,
    LOSS_OF_METRIC,
    CertificateProblem,
    CertifiedRows,
    CertifiedScore,
    GivenRules,
    completeness_of,
    metric_of_given_rules,
    score_given_rules,
)
from skescore.certificates._solvers import KindProof
from skescore.optimal import F1Bound, Frontier, SolverLimits
from skescore.rules import RuleSet
from skescore.scorers import SCORE_SPECS, make_score_scorer

JSON_FORMAT = "skescore.Certificate"
_VERSION = 1


class ScoreBounds(NamedTuple):
    """Bounds of the best score of one kind of rules.

    Parameters
    ----------
    incumbent : float
        Score of the best rules found.
    bound : float
        Proven bound: no rules have a better score (larger if greater is better, else smaller).
    """

    incumbent: float
    bound: float


class CertificateSettings(TypedDict):
    """Settings of a certificate, except for the name of the score.

    Attributes
    ----------
    metric : str
        Metric of the predictions, such as ``"f1_weighted"``.
    completeness : {"volume", "instances"}
        Measure of the completeness of the given rules.
    weights : dict of str to float
        Weights of the score.
    cuts_per_feature : int or None
        Largest number of cuts of a numeric feature in addition to those of the given rules; None
        for all cuts between neighboring values.
    stated_cuts : bool
        Whether the cuts were stated one by one.
    """

    metric: str
    completeness: str
    weights: dict[str, float]
    cuts_per_feature: int | None
    stated_cuts: NotRequired[bool]


class HeldOut(TypedDict):
    """Scores of the best rules found and of the given rules on held-out rows.

    Attributes
    ----------
    kind : {"tree", "list"}
        Kind of the best rules found.
    n_rules : int
        Largest number of these rules.
    best, given : list of float
        Score on each split of the search: of the best rules, which are searched again on its
        training rows, and of the given rules, which are extracted again.
    """

    kind: str
    n_rules: int
    best: list[float]
    given: list[float]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof of how far given rules are from the best possible rules; see :func:`certify`.

    The proof is for specific rows and one score with its weights; see also :meth:`with_score`.

    Parameters
    ----------
    frontiers : sequence of Frontier
        Proven bounds of the smallest loss of every size, for each kind of rules.
    measured : sequence of sequence of dict of str to float
        Metrics and ``"n_rules"`` of the incumbent of every size, for each kind of rules.
    score : str
        Name of the score.
    settings : CertificateSettings
        Metric, completeness and weights of the score, and the cuts.
    rows : CertifiedRows
        Description of the rows.
    given_rules : GivenRules
        The given rules.
    held_out : HeldOut, optional
        Scores on held-out rows; see :meth:`with_held_out`.
    f1_bounds : sequence of F1Bound, default=()
        For some sizes of trees, bounds of the weighted F1 that are tighter than those from errors.

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
    >>> certificate = certify(extractor, X, kinds=["tree"])
    >>> round(certificate.gap(), 4), round(certificate.with_score("ice", phi=5).gap(), 4)
    (0.0, 0.0003)
    """

    frontiers: tuple[Frontier, ...]
    measured: tuple[tuple[Mapping[str, float], ...], ...]
    score: str
    settings: CertificateSettings
    rows: CertifiedRows
    given_rules: GivenRules
    held_out: HeldOut | None = None
    f1_bounds: tuple[F1Bound, ...] = ()

    @classmethod
    def from_proofs(cls, problem: CertificateProblem, proofs: Sequence[KindProof]) -> Certificate:
        """Create a certificate from a problem and the proofs for its kinds of rules.

        Parameters
        ----------
        problem : CertificateProblem
            The problem.
        proofs : sequence of KindProof
            One proof per kind of rules.

        Returns
        -------
        Certificate
            The certificate.
        """
        settings: CertificateSettings = {
            "metric": problem.score.metric,
            "completeness": problem.completeness,
            "weights": dict(problem.score.weights),
            "cuts_per_feature": problem.cuts_per_feature,
        }
        if problem.has_stated_cuts:
            settings["stated_cuts"] = True
        return cls(
            tuple(proof.frontier for proof in proofs),
            tuple(proof.measured for proof in proofs),
            problem.score.spec.name,
            settings,
            problem.rows,
            problem.given_rules,
            None,
            tuple(bound for proof in proofs for bound in proof.f1_bounds),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of rules that the certificate compares."""
        return tuple(frontier.kind for frontier in self.frontiers)

    def with_score(self, score: str | None = None, **weights: float) -> Certificate:
        """Apply the proof to another score or other weights, without a new search.

        Parameters
        ----------
        score : str, optional
            Name of the score; by default the score of the certificate.
        **weights : float
            Weights of the score. By default the weights of the certificate, or the default weights
            of another score.

        Returns
        -------
        Certificate
            The certificate with the same bounds, for the new score.

        Raises
        ------
        ValueError
            If the score is unknown, or depends on a loss that the certificate does not bound or on
            a metric that is undefined for the given rules.
        """
        name = self.score if score is None else score.removeprefix("neg_")
        spec = SCORE_SPECS.get(name)
        if spec is None:
            raise ValueError(f"score must be one of {list(SCORE_SPECS)}, got {score!r}.")
        old_weights = self.settings["weights"] if name == self.score else {}
        metric = self.settings["metric"] if name == self.score else spec.metric(self.rows["task"])
        loss = LOSS_OF_METRIC.get(metric)
        if loss != self.frontiers[0].loss:
            raise ValueError(
                f"score={name!r} depends on {str(loss).replace('_', ' ')}s, but the certificate "
                f"bounds {self.frontiers[0].loss.replace('_', ' ')}s. Create another certificate "
                f"with certify(..., scoring={name!r})."
            )
        settings = self.settings | {
            "metric": metric,
            "weights": dict(spec.check_weights({**old_weights, **weights})),
        }
        held_out = self.held_out if (name, settings) == (self.score, self.settings) else None
        certificate = replace(
            self, score=name, settings=cast(CertificateSettings, settings), held_out=held_out
        )
        certificate.given_prediction()  # raises an error if the metric is undefined
        return certificate

    def with_held_out(self, search: Any, *, limits: SolverLimits | None = None) -> Certificate:
        """Score the best rules found on the held-out rows of a search.

        Rules with the fewest errors on some rows are not necessarily better on other rows. Rules of
        the same kind and size are therefore searched on the training rows of each split of the
        search, with the same predictions of the black box as for its candidates, and scored on
        held-out rows.

        Parameters
        ----------
        search : ExtractorSearchCV
            The fitted search whose winner the certificate compares.
        limits : SolverLimits, optional
            Time limit for the rules of all splits, not including the fits of black boxes, and
            largest number of nodes for each split; by default 60 seconds.

        Returns
        -------
        Certificate
            The certificate with :attr:`held_out`, which :meth:`to_text` mentions.
        """
        limits = limits or SolverLimits(time_limit=60.0)
        time_limit, max_nodes = limits.time_limit, limits.max_nodes
        spec = self._score.spec
        kind = max(self.kinds, key=lambda k: spec.signed(self.interval(k).incumbent))
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
            max_conditions = self._frontier(kind)[0].space["max_conditions"]
            params |= {"max_rules": size, "max_conditions": max_conditions}
        weights: dict[str, Any] = dict(self.settings["weights"])
        scorer = make_score_scorer(
            self.score,
            metric=self.settings["metric"],
            completeness=self.settings["completeness"],
            reference="black_box" if self.rows["reference"] == BLACK_BOX_REFERENCE else "data",
            **weights,
        )
        candidates = [
            search.leaderboard_.iloc[0],
            search.make_candidate({"extractor": f"optimal-{kind}", "params": params}),
        ]
        given_scores, best_scores = search.held_out_scores(candidates, scoring=scorer)
        held_out: HeldOut = {
            "kind": kind,
            "n_rules": size,
            "best": [float(spec.signed(value)) for value in best_scores],
            "given": [float(spec.signed(value)) for value in given_scores],
        }
        return replace(self, held_out=held_out)

    def _describe_held_out(self, held_out: HeldOut) -> str:
        """Return a sentence on the scores on held-out rows."""
        spec = SCORE_SPECS[self.score]
        best, given = (float(np.mean(scores)) for scores in (held_out["best"], held_out["given"]))
        figures = (
            f"The search for the best {held_out['kind']} of at most "
            f"{plural(held_out['n_rules'], 'rule')} was repeated on the training rows of "
            f"{plural(len(held_out['best']), 'split')}. On held-out rows, its {held_out['kind']} "
            f"has {spec.label} {best:.4f} on average, and rules extracted like the given ones have "
            f"{given:.4f}"
        )
        if np.isnan([best, given]).any():
            return f"{figures}."
        if spec.signed(best) > spec.signed(given):
            return f"{figures}: the {held_out['kind']} is better on held-out rows, too."
        return f"{figures}: the {held_out['kind']} is not better on held-out rows."

    @property
    def _score(self) -> CertifiedScore:
        """Score with its metric and weights."""
        settings = self.settings
        return CertifiedScore(SCORE_SPECS[self.score], settings["metric"], settings["weights"])

    def _frontier(self, kind: str) -> tuple[Frontier, tuple[Mapping[str, float], ...]]:
        """Return the frontier of a kind of rules, and the metrics of its incumbents."""
        check_choice("kind", kind, self.kinds)
        index = self.kinds.index(kind)
        return self.frontiers[index], self.measured[index]

    def given_prediction(self) -> float:
        """Return the performance or loss of the given rules in the formula of the score.

        Returns
        -------
        float
            A performance or a loss.
        """
        score = self._score
        return score.prediction_term(metric_of_given_rules(score, self.given_rules))

    def given_score(self) -> float:
        """Return the score of the given rules on these rows.

        Returns
        -------
        float
            The score, not negated.
        """
        return score_given_rules(self._score, self.given_rules, self.settings["completeness"])

    def given_loss(self) -> float:
        """Return the loss of the given rules, in the units of the frontiers.

        Returns
        -------
        float
            The loss; uncovered rows count as errors, or as predicted by the mean.
        """
        total = self.frontiers[0].total_weight
        for key, value in self.given_rules["metrics"].items():
            metric, policy = key.split(" ")
            if policy != "penalize" or metric == "f1_weighted":
                continue
            if metric == "accuracy":
                return (1 - value) * total
            if metric == "r2":
                return (1 - value) * self.rows["squares"]
            return total * (value**2 if metric == "root_mean_squared_error" else value)
        raise ValueError("The certificate lacks a metric that determines the loss of its rules.")

    def prediction_bounds(self, kind: str) -> tuple[ScoreBounds, ...]:
        """Return the bounds of the performance or loss in the formula, for each number of rules.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        tuple of ScoreBounds
            Term of the incumbent and its proven bound, for at most 1, 2, 3, ... rules.
        """
        score = self._score
        frontier, measured = self._frontier(kind)
        better = max if score.spec.prediction == "performance" else min
        f1_bounds = {bound.max_leaves: bound for bound in self._f1_bounds_of(kind)}
        bounds = []
        for size, loss, metrics in zip(
            frontier.sizes, frontier.lower.tolist(), measured, strict=True
        ):
            incumbent = score.prediction_term(metrics[score.metric])
            best_metric = score.bound_metric(loss, size, self.rows, frontier.total_weight)
            if size in f1_bounds:
                f1_bound = f1_bounds[size]
                incumbent = better(incumbent, score.prediction_term(f1_bound.incumbent))
                best_metric = min(best_metric, f1_bound.upper_bound)
            bound = better(incumbent, score.prediction_term(best_metric))
            bounds.append(ScoreBounds(incumbent, bound))
        return tuple(bounds)

    def corridor(self, kind: str) -> tuple[ScoreBounds, ...]:
        """Return the bounds of the best score, for each number of rules.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        tuple of ScoreBounds
            Score of the incumbent and its proven bound, for 1, 2, 3, ... rules that cover the
            whole domain. If fewer rules are equally good, rules that never hold are added.
        """
        value = self._score.value
        return tuple(
            ScoreBounds(*(value(prediction, size, 1.0) for prediction in bounds))
            for size, bounds in enumerate(self.prediction_bounds(kind), start=1)
        )

    def interval(self, kind: str) -> ScoreBounds:
        """Return bounds on the best score of rules of a kind that cover the whole domain.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        ScoreBounds
            Score of the best rules found, and its proven bound.
        """
        scores = self._incumbent_scores(kind)
        best = max if self._score.spec.greater_is_better else min
        bounds = [bounds.bound for bounds in self.corridor(kind)]
        return ScoreBounds(best(scores), best([*bounds, *scores]))

    def _f1_bounds_of(self, kind: str) -> tuple[F1Bound, ...]:
        """Return the bounds of the weighted F1 if the score uses it for this kind of rules."""
        return self.f1_bounds if (kind, self._score.metric) == ("tree", "f1_weighted") else ()

    def _incumbent_scores(self, kind: str) -> list[float]:
        """Return the scores of all incumbents."""
        score = self._score
        metrics = [(m[score.metric], m["n_rules"]) for m in self._frontier(kind)[1]]
        metrics += [
            (bound.incumbent, len(bound.rules))
            for bound in self._f1_bounds_of(kind)
            if bound.rules is not None
        ]
        return [score.value(score.prediction_term(value), size, 1.0) for value, size in metrics]

    def covers_all_sizes(self, kind: str) -> bool:
        """Return whether larger rule sets cannot have a better score, even without errors.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        bool
            Whether :meth:`interval` is valid for any number of rules.
        """
        score = self._score
        next_size = self._frontier(kind)[0].sizes[-1] + 1
        incumbent = score.spec.signed(self.interval(kind).incumbent)
        return bool(score.signed(score.perfect_prediction, next_size) <= incumbent)

    def gap(self, kind: str | None = None) -> float:
        """Return a proven bound of how much better the best score is than the given rules' score.

        Parameters
        ----------
        kind : {"tree", "list"}, optional
            The kind of rules; by default all kinds of the certificate.

        Returns
        -------
        float
            The bound, at least 0, in units of the score.
        """
        spec = self._score.spec
        given_score = spec.signed(self.given_score())
        kinds = self.kinds if kind is None else (kind,)
        best_bound = max(spec.signed(self.interval(k).bound) for k in kinds)
        return float(max(0.0, best_bound - given_score))

    def best_rules(self, kind: str) -> RuleSet | None:
        """Return the rules of a kind with the best score that was found.

        Parameters
        ----------
        kind : {"tree", "list"}
            The kind of rules.

        Returns
        -------
        RuleSet or None
            The rules; None if only their loss is known.
        """
        scores = [self._score.spec.signed(value) for value in self._incumbent_scores(kind)]
        rules = [*self._frontier(kind)[0].rules]
        rules += [bound.rules for bound in self._f1_bounds_of(kind) if bound.rules is not None]
        return rules[int(np.argmax(scores))]

    def _describe_space(self, frontier: Frontier) -> str:
        """Describe the search space of a frontier: kind and size of the rules, and their cuts."""
        max_rules = frontier.sizes[-1]
        size = "1 leaf" if max_rules == 1 else f"{max_rules} leaves"
        if frontier.kind == "list":
            size = plural(max_rules, "rule")
            conditions = frontier.space.get("max_conditions")
            if conditions is not None:
                size += f" with at most {plural(conditions, 'condition')} each"
        per_feature = self.settings.get("cuts_per_feature")
        if self.settings.get("stated_cuts"):
            space = frontier.space["cuts"]
            n_cuts = sum(map(len, space["thresholds"].values()))
            n_cuts += sum(map(len, space["categories"].values()))
            n_cuts += sum(map(len, space.get("category_sets", {}).values()))
            cuts = plural(n_cuts, "stated cut")
        else:
            is_complete = per_feature is None
            cuts = "all cuts between neighboring values"
            cuts = cuts if is_complete else f"{per_feature} cuts per feature"
            if not is_complete or "category_sets" in frontier.space["cuts"]:
                cuts += " and those of the given rules"
        return f"decision {frontier.kind} of at most {size} over {cuts}"

    def _count_given_rules(self) -> str:
        n_rules = self.given_rules["n_rules"]
        return "1 rule has" if n_rules == 1 else f"{n_rules} rules have"

    def _describe_score(self) -> str:
        """Return the metric, the weights and the completeness of the score in words."""
        settings = self.settings
        weights = (f"{name} {weight:g}" for name, weight in sorted(settings["weights"].items()))
        completeness = ["completeness by rows"] if settings["completeness"] == "instances" else []
        return ", ".join([METRIC_NAMES[settings["metric"]], *weights, *completeness])

    def to_text(self) -> str:
        """Describe the proof in sentences.

        Returns
        -------
        str
            One sentence for each kind of rules, and sentences on the limits of the proof.
        """
        spec = SCORE_SPECS[self.score]
        given_score = self.given_score()
        n_rows = self.rows["n_rows"]
        rows = "this row" if n_rows == 1 else f"these {n_rows} rows"
        weight_note = " with their weights" if self.rows["weighted"] else ""
        lines = [
            f"On {rows}{weight_note}, against {self.rows['reference']}, "
            f"{self._count_given_rules()} {spec.label} {given_score:.4f} "
            f"({self._describe_score()})."
        ]
        for frontier in self.frontiers:
            kind = frontier.kind
            interval, gap = self.interval(kind), self.gap(kind)
            space = self._describe_space(frontier)
            if self.covers_all_sizes(kind):
                space += f" (or with more {'leaves' if kind == 'tree' else 'rules'})"
            best_label = "the best" if interval.incumbent == interval.bound else "the best found"
            incumbent = f"{best_label} has {spec.label} {interval.incumbent:.4f}"
            if gap <= 0:
                lines.append(f"No {space} is better; {incumbent}.")
            else:
                improvement = f"{_round_up(gap)} {spec.label}"
                lines.append(f"No {space} is better by more than {improvement}; {incumbent}.")
        completeness = completeness_of(self.given_rules, self.settings["completeness"])
        if completeness < 1:
            lines.append(
                "The certificate compares complete rules; the completeness of the given rules is "
                f"{completeness:.3f}."
            )
        lines.append("The certificate holds for these rows, not for new ones.")
        if self.held_out is not None:
            lines.append(self._describe_held_out(self.held_out))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """Return the sentences, and the bounds as tables, in HTML."""
        head, *sentences = self.to_text().split("\n")
        parts = [text_html("headline", head), *(text_html("plain", line) for line in sentences)]
        for frontier in self.frontiers:
            bounds = zip(
                frontier.sizes, frontier.lower, frontier.upper, frontier.status, strict=True
            )
            rows = [
                [str(size), f"{low:g}", f"{high:g}", status.replace("_", " ")]
                for size, low, high, status in bounds
            ]
            loss = frontier.loss.replace("_", " ")
            head_cells = ["Rules", "No less than", "Best found", "Proof"]
            caption = f"{frontier.kind}s: {loss} on {plural(self.rows['n_rows'], 'row')}"
            parts.append(
                table_html(head_cells, rows, caption, numbers=head_cells[:3], kind="bounds")
            )
        return notebook_view(parts)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the certificate with its rules as JSON.

        Parameters
        ----------
        indent : int or None, default=2
            Number of spaces per level; None for one line.

        Returns
        -------
        str
            JSON for :meth:`from_json` and :func:`check_certificate`.
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
                    "rules": [_rules_to_json(rules) for rules in frontier.rules],
                }
            )
            if frontier.kind == "tree" and self.f1_bounds:
                frontiers[-1]["f1_bounds"] = [
                    {**vars(bound), "rules": _rules_to_json(bound.rules)}
                    for bound in self.f1_bounds
                ]
        content: dict[str, Any] = {
            "format": JSON_FORMAT,
            "version": _VERSION,
            "score": self.score,
            "settings": dict(self.settings),
            "rows": dict(self.rows),
            "given": {**self.given_rules, "rules": _rules_to_json(self.given_rules["rules"])},
            "frontiers": frontiers,
        }
        if self.held_out is not None:
            content["held_out"] = dict(self.held_out)
        return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate from JSON.

        Parameters
        ----------
        text : str
            JSON of :meth:`to_json`.

        Returns
        -------
        Certificate
            The certificate; :func:`check_certificate` checks its proof.

        Raises
        ------
        ValueError
            If the text is not a certificate.
        """
        try:
            data = json_of(text, finite=True)
        except ValueError as error:
            raise ValueError(f"text must be a certificate in JSON, but {error}.") from error
        if not isinstance(data, dict) or data.get("format") != JSON_FORMAT:
            raise ValueError(f"text must be a certificate (format {JSON_FORMAT!r}).")
        if data.get("version") != _VERSION:
            raise ValueError(
                f"The certificate has version {data.get('version')!r}, but this skescore reads "
                f"version {_VERSION}. Upgrade skescore."
            )
        if not isinstance(data.get("score"), str) or data["score"] not in SCORE_SPECS:
            raise ValueError(
                f"The certificate has the unknown score {data.get('score')!r}. Known scores are "
                f"{', '.join(SCORE_SPECS)}; register others with register_score."
            )
        try:
            frontiers = [
                Frontier(
                    frontier["kind"],
                    frontier["loss"],
                    tuple(range(1, len(frontier["lower"]) + 1)),
                    frontier["lower"],
                    frontier["upper"],
                    tuple(_rules_from_json(rules) for rules in frontier["rules"]),
                    frontier["total_weight"],
                    frontier["space"],
                    tuple(frontier["status"]),
                    frontier["seconds"],
                )
                for frontier in data["frontiers"]
            ]
            measured = tuple(tuple(frontier["measured"]) for frontier in data["frontiers"])
            given_rules = data["given"] | {"rules": _rules_from_json(data["given"]["rules"])}
            bounds = [
                F1Bound(**(bound | {"rules": _rules_from_json(bound["rules"])}))
                for frontier in data["frontiers"]
                for bound in frontier.get("f1_bounds", ())
            ]
            return cls(
                tuple(frontiers),
                measured,
                data["score"],
                data["settings"],
                data["rows"],
                given_rules,
                data.get("held_out"),
                tuple(bounds),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"The certificate has missing or invalid fields: {error}.") from error


def certificate_schema() -> dict[str, Any]:
    """Return the format of certificates as JSON Schema (draft 2020-12).

    The checker has further requirements: unique names of fields, finite numbers, integers without
    a decimal point, conditions that some number satisfies and that are at most 50 deep, and an `m`
    of at most the number of conditions.

    Returns
    -------
    dict
        The schema.

    Examples
    --------
    >>> from skescore.certificates import certificate_schema
    >>> certificate_schema()["required"]
    ['format', 'version', 'score', 'settings', 'rows', 'given', 'frontiers']
    """
    return deepcopy(SCHEMA)


def _round_up(gap: float) -> str:
    """Return a gap rounded up to four decimals."""
    return f"{np.ceil(gap * 1e4 - 1e-9) / 1e4:.4f}"


def _rules_to_json(rules: RuleSet | None) -> Any:
    """Return rules as JSON values."""
    return None if rules is None else json.loads(rules.to_json())


def _rules_from_json(data: Any) -> RuleSet | None:
    """Return rules from JSON values."""
    return None if data is None else RuleSet.from_json(json.dumps(data))
