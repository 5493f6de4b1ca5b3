"""Rules of scoredrulesets by genetic programming, with default settings.

A rule has a vector of scores, one per class. The class with the largest sum over all rules that
hold is predicted. A rule without conditions is the default for rows on which no other rule holds.
"""

from skescore.rules import Interval, OneOf, Rule, RuleSet, RuleStatistics

REQUIRES = ["scoredrulesets>=0.2"]
#: Weight of the default, so small that it decides only where no other rule holds.
_DEFAULT_WEIGHT = 1e-9


def _read_atom(atom, columns):
    """Return the condition of an atom, which compares a feature with a value."""
    feature, value = columns.index(str(atom.feature)), atom.value
    if atom.op in ("in", "not_in", "!="):
        values = [value] if atom.op == "!=" else value
        return OneOf(feature, [float(v) for v in values], negated=atom.op != "in")
    if atom.op in ("<=", "<"):
        return Interval(feature, upper=float(value), upper_closed=atom.op == "<=")
    if atom.op in (">=", ">"):
        return Interval(feature, float(value), lower_closed=atom.op == ">=")
    lower, upper = (value, value) if atom.op == "==" else value
    return Interval(feature, float(lower), float(upper), lower_closed=True)


def _learn(X, y, random_state):
    from scoredrulesets import RuleGPClassifier

    columns = [f"x{j}" for j in range(X.shape[1])]
    model = RuleGPClassifier(feature_names=columns, random_state=random_state)
    scored = model.fit(X.to_numpy(), y).to_ruleset()
    positions = [scored.class_labels.index(label) for label in model.classes_.tolist()]
    rules = []
    for rule in scored.rules:
        scores = [float(rule.scores[position]) for position in positions]
        rules.append(
            Rule(
                [_read_atom(atom, columns) for atom in rule.atoms],
                int(model.classes_[scores.index(max(scores))]),
                RuleStatistics(sum(scores), tuple(scores)),
                sum(scores) * (1.0 if rule.atoms else _DEFAULT_WEIGHT),
            )
        )
    return RuleSet(
        rules,
        list(X.columns),
        task="classification",
        classes=model.classes_.tolist(),
        ordered=False,
        voting="probabilities",
    )


METHODS = {"scoredrulesets RuleGP": {"classification": _learn}}
