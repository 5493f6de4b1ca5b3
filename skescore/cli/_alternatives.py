"""The rule lists that ``skescore tune`` offers next to the winner, in words."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skescore._text import percentage, plural
from skescore.registry import extractor_label

if TYPE_CHECKING:
    from skescore.cli._output import Printer
    from skescore.tuning import Alternative, ExtractorSearchCV

__all__ = ["figures_text", "print_alternatives", "print_winner_figures"]

#: Largest number of rules of an alternative that are printed.
_MAX_LINES = 12


def figures_text(
    correctness: float | None,
    fidelity: float | None,
    measure: str,
    *,
    digits: int = 0,
    weighted: Collection[str] = (),
) -> str:
    """Return correctness and fidelity as a phrase that names their rows and references.

    `weighted` names those of both that are measured on weighted rows.
    """
    parts = []
    held_out = f"{'weighted ' if 'correctness' in weighted else ''}held-out rows"
    unseen = f"{'weighted ' if 'fidelity' in weighted else ''}unseen rows"
    if measure == "accuracy":
        if correctness is not None:
            share = percentage(correctness, digits=digits)
            parts.append(f"right for {share} of {held_out} (data)")
        if fidelity is not None:
            share = percentage(fidelity, digits=digits)
            parts.append(f"agrees with the model on {share} of {unseen}")
    else:
        if correctness is not None:
            parts.append(f"R² {correctness:.3f} on {held_out} (data)")
        if fidelity is not None:
            parts.append(f"R² {fidelity:.3f} against the model on {unseen}")
    return ", ".join(parts)


def print_winner_figures(printer: Printer, record: Mapping[str, Any]) -> None:
    """Write correctness and fidelity of the winner, and what more rules would buy."""
    winner = next((one for one in record["lists"] if "best" in one["roles"]), None)
    if winner is None:
        return
    text = _figures_of(winner, record)
    if text:
        printer.line(f"this list: {text}")
    other_roles = [_describe_role(role, record) for role in winner["roles"] if role != "best"]
    if other_roles:
        printer.line(f"it is also {', and '.join(other_roles)}")
    if gain := _gain_text(winner, record["measure"]):
        printer.line(gain)
    if record["fidelity"]["generated"]:
        printer.line(
            "(The model was fitted elsewhere and may know these rows, so unseen rows are generated "
            "from held-out rows.)"
        )


def print_alternatives(
    printer: Printer,
    options: argparse.Namespace,
    search: ExtractorSearchCV,
    record: Mapping[str, Any],
) -> None:
    """Write the rule lists other than the winner, each with its figures."""
    alternatives = [
        (one, figures)
        for one, figures in zip(search.alternatives_, record["lists"], strict=True)
        if "best" not in one.roles
    ]
    if not alternatives:
        _print_best_larger_list(printer, search, record)
        return
    several = "another rule list" if len(alternatives) == 1 else "other rule lists"
    printer.heading(f"{several} to choose from, by correctness or by fidelity:")
    for alternative, figures in alternatives:
        _print_list(printer, options, alternative, figures, record)
    if all(one.is_constant for one, _ in alternatives):
        _print_best_larger_list(printer, search, record)


def _print_list(
    printer: Printer,
    options: argparse.Namespace,
    alternative: Alternative,
    figures: Mapping[str, Any],
    record: Mapping[str, Any],
) -> None:
    roles = ", and ".join(_describe_role(role, record) for role in figures["roles"])
    count = plural(figures["n_rules"], "rule")
    printer.line(f"- {roles}: {extractor_label(figures['extractor'])} with {count}")
    rules = alternative.rules.standalone() if options.standalone else alternative.rules
    lines = str(rules).splitlines()
    if len(lines) > _MAX_LINES:
        n_more = len(lines) - _MAX_LINES
        lines = [*lines[:_MAX_LINES], f"... and {plural(n_more, 'rule')}, see run.json (--output)"]
    printer.verbatim("\n".join(lines))
    printer.line(f"this list: {_figures_of(figures, record)}")
    if gain := _gain_text(figures, record["measure"]):
        printer.line(gain)


def _print_best_larger_list(
    printer: Printer, search: ExtractorSearchCV, record: Mapping[str, Any]
) -> None:
    """Write the figures of the best candidate that is not a constant, if only constants won."""
    lists = record["lists"]
    if not lists or not all(one["is_constant"] for one in lists):
        return
    board = search.leaderboard_
    larger = board[(board["state"] == "complete") & (board["n_rules"] > 1.5)]
    if not len(larger):
        printer.line("(A constant: no candidate has more rules.)")
        return
    row = larger.iloc[0]
    figures = {
        name: None if row[name] != row[name] else float(row[name])
        for name in ("correctness", "fidelity")
    }
    text = figures_text(
        figures["correctness"], figures["fidelity"], record["measure"], weighted=_weighted(record)
    )
    printer.line(
        f"(A constant predicts the same for all rows. The best candidate with more rules is "
        f"{extractor_label(row['extractor'])} with {row['n_rules']:.3g} rules: {text}.)"
    )


def _describe_role(role: str, record: Mapping[str, Any]) -> str:
    """Return the property by which a list was chosen, in words."""
    if role == "shortest":
        return "the shortest list whose correctness is within one standard error of the best"
    count = plural(int(record["max_rules"]), "rule")
    return f"the list most faithful to the model with at most {count}"


def _figures_of(figures: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return the figures of a list, with a decimal place if lists would look alike without it."""
    digits = 0
    for name in ("correctness", "fidelity"):
        values = {one[name] for one in record["lists"] if one[name] is not None}
        if len({percentage(value) for value in values}) < len(values):
            digits = 1
    return figures_text(
        figures["correctness"],
        figures["fidelity"],
        record["measure"],
        digits=digits,
        weighted=_weighted(record),
    )


def _weighted(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the figures that are measured on weighted rows."""
    return [name for name in ("correctness", "fidelity") if record[name]["weighted"]]


def _gain_text(figures: Mapping[str, Any], measure: str) -> str:
    """Return the gain of the next larger list that is better; empty if none is better."""
    following = figures["next"]
    if following is None:
        return ""
    n_more = round(following["n_rules"] - figures["n_rules"])
    parts = []
    for noun, name in (("right for", "correctness"), ("agrees with the model on", "fidelity")):
        now, then = figures[name], following[name]
        if now is None or then is None:
            continue
        if measure == "accuracy":
            parts.append(f"{noun} {_pair_of_percentages(then, now)}")
        else:
            label = "R² (data)" if name == "correctness" else "R² (model)"
            parts.append(f"{label} {then:.3f} instead of {now:.3f}")
    if not parts:
        return ""
    return f"with {plural(n_more, 'more rule')}: {', '.join(parts)}"


def _pair_of_percentages(then: float, now: float) -> str:
    """Return two shares with as many digits as are needed to distinguish them."""
    for digits in (0, 1, 2):
        texts: Sequence[str] = [percentage(value, digits=digits) for value in (then, now)]
        if texts[0] != texts[1]:
            return f"{texts[0]} instead of {texts[1]}"
    return f"{texts[0]} as before"
