"""Prolog clauses for rules that answer together: what each says, and how it is added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skescore.rules._rule import LinearOutput, Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules.exporters._common import class_labels
from skescore.rules.exporters._prolog_goals import (
    NO_NUMBER,
    Goals,
    number_text,
    terms_of,
    value_text,
)


def answer_goals(ruleset: RuleSet, name: str, rule_head: str) -> list[str]:
    """The body of the clause that answers.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with voting.
    name : str
        The predicate.
    rule_head : str
        How one rule is asked what it adds, the variable `Said`.
    """
    zeros = ", ".join(["0.0"] * _n_sums(ruleset))
    goals = [
        f"findall(Said, {rule_head}, [Said1|Rest])",
        f"{name}_sum([Said1|Rest], [{zeros}], Sums)",
    ]
    if ruleset.classes is not None:
        labels = ", ".join(map(value_text, class_labels(ruleset)))
        return [*goals, "!", f"{name}_greatest(Sums, [{labels}], Said2), Output = Said2"]
    if ruleset.voting == "sum":
        return [*goals, "!", "Sums = [Output]"]
    return [
        *goals,
        "Sums = [Weight, Total], Weight > 0",
        f"!, {name}_mean(Total, Weight, Said2), Output = Said2",
    ]


def contribution(
    ruleset: RuleSet, goals: Goals, rule: Rule, shares: Sequence[float] | None
) -> tuple[str, list[str]]:
    """The list that a rule adds to the sums, and the goals that compute what is in it."""
    if ruleset.classes is None:
        weight = _weight(rule)
        first = [number_text(weight)] if ruleset.voting == "mean" else []
        output = rule.output
        if isinstance(output, LinearOutput) and output.terms:
            goal = goals.function("Said2", output, NO_NUMBER, f"{number_text(weight)}*")
            return f"[{', '.join([*first, 'Said2'])}]", [goal]
        constant = output.intercept if isinstance(output, LinearOutput) else float(output)
        return f"[{', '.join([*first, number_text(weight * constant)])}]", []
    parts = shares
    if parts is None:
        own = ruleset.classes.index(rule.output)
        parts = [float(k == own) for k in range(len(ruleset.classes))]
    if not isinstance(rule.weight, LinearOutput) or not rule.weight.terms:
        return f"[{', '.join(number_text(_weight(rule) * part) for part in parts)}]", []
    # A weight that a missing value leaves unknown says nothing.
    lines = [goals.function("Weight", rule.weight, "0.0")]
    said = [f"Said{k}" if part else "0.0" for k, part in enumerate(parts)]
    lines += [f"Said{k} is Weight*{number_text(part)}" for k, part in enumerate(parts) if part]
    return f"[{', '.join(said)}]", lines


def helpers(ruleset: RuleSet, name: str) -> Iterator[str]:
    """The predicates that add up what rules say.

    Choices between clauses rather than within them: tuProlog's parser takes minutes over a clause
    that computes before a choice and within it.
    """
    unknown = any(terms_of(rule.output) for rule in ruleset.rules)
    numbers = range(1, _n_sums(ruleset) + 1)
    said, old, new = (", ".join(f"{letter}{k}" for k in numbers) for letter in "ABC")
    yield f"{name}_sum([], Sums, Sums)."
    yield f"{name}_sum([[{said}]|Rest], [{old}], Sums) :-"
    for k in numbers:
        plus = f"{name}_plus(A{k}, B{k}, C{k})"
        yield f"    {plus if unknown else f'C{k} is B{k} + A{k}'},"
    yield f"    {name}_sum(Rest, [{new}], Sums)."
    if unknown:
        yield f"{name}_plus(A, B, C) :- number(A), number(B), !, C is B + A."
        yield f"{name}_plus(_, _, {NO_NUMBER})."
    if ruleset.classes is not None:
        yield from (
            "% the first label with the greatest sum",
            f"{name}_greatest([Sum|Sums], [Label|Labels], Best) :-",
            f"    {name}_greatest(Sums, Labels, Sum, Label, Best).",
            f"{name}_greatest([], [], _, Label, Label).",
            f"{name}_greatest([Sum|Sums], [Label|Labels], Least, _, Best) :-",
            "    Sum > Least, !,",
            f"    {name}_greatest(Sums, Labels, Sum, Label, Best).",
            f"{name}_greatest([_|Sums], [_|Labels], Least, Label, Best) :-",
            f"    {name}_greatest(Sums, Labels, Least, Label, Best).",
        )
    elif ruleset.voting == "mean":
        yield from (
            "% tuProlog divides to nine digits; what they leave is divided once more",
            f"{name}_mean({NO_NUMBER}, _, {NO_NUMBER}) :- !.",
            f"{name}_mean(Total, Weight, Mean) :-",
            "    Quotient is Total / Weight, Left is Total - Quotient*Weight,",
            f"    {name}_mean(Total, Weight, Quotient, Left, Mean).",
            f"{name}_mean(Total, _, Quotient, Left, Quotient) :-",
            "    abs(Left) =< abs(Total)*1.0e-12, !.",
            f"{name}_mean(_, Weight, Quotient, Left, Mean) :- Mean is Quotient + Left / Weight.",
        )


def _n_sums(ruleset: RuleSet) -> int:
    if ruleset.classes is not None:
        return len(ruleset.classes)
    return 2 if ruleset.voting == "mean" else 1


def _weight(rule: Rule) -> float:
    return rule.weight.intercept if isinstance(rule.weight, LinearOutput) else rule.weight
