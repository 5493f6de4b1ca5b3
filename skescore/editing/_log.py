"""Logs of edits with author, reason and time, chained by hashes so that changes are detected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from skescore._io import json_of
from skescore.editing._canonical import sha256_of
from skescore.editing._edits import apply_edit
from skescore.rules import RuleSet

LOG_FORMAT = "skescore edit log"
LOG_VERSION = 1
#: Actions that undo or repeat an edit.
_HISTORY_ACTIONS = ("undo", "redo")


class EditLogError(ValueError):
    """Error for a log that was changed, is damaged, or does not result in the stated rules."""


@dataclass(frozen=True)
class EditRecord:
    """One step of an edit log.

    Parameters
    ----------
    step : int
        Number of the step, from 1.
    time : str
        Time of the step, as ISO 8601 with the time zone.
    author, reason : str or None
        Author of the step, and reason for it.
    edit : mapping
        Edit as JSON, see :func:`apply_edit`, or ``{"action": "undo"}`` or ``"redo"``.
    before, after : sequence of str
        Lines of the changed rules before and after the step.
    rules_sha256 : str
        Hash of the rules after the step.
    sha256 : str
        Hash of the step and of all steps before it.
    """

    step: int
    time: str
    author: str | None
    reason: str | None
    edit: Mapping[str, Any]
    before: Sequence[str]
    after: Sequence[str]
    rules_sha256: str
    sha256: str

    def to_text(self) -> str:
        """Describe the step in a sentence with the lines that it changed."""
        author = f" by {self.author}" if self.author else ""
        reason = f", because {self.reason}" if self.reason else ""
        lines = [f"{self.step}. {describe_edit(self.edit)}{author} at {self.time}{reason}"]
        lines += [f"   - {line}" for line in self.before]
        lines += [f"   + {line}" for line in self.after]
        return "\n".join(lines)


def describe_edit(edit: Mapping[str, Any]) -> str:
    """Describe an edit, such as ``set age ≤ 18 in rule 2``.

    Parameters
    ----------
    edit : mapping
        Edit as JSON, see :func:`apply_edit`.

    Returns
    -------
    str
    """
    action = str(edit["action"])
    describe = _DESCRIPTIONS.get(action)
    return action.replace("_", " ") if describe is None else describe(edit)


def _describe_bound(edit: Mapping[str, Any]) -> str:
    feature = edit["feature"]
    parts = []
    for side, open_sign, closed_sign in (("lower", ">", "≥"), ("upper", "<", "≤")):
        if side not in edit:
            continue
        if edit[side] is None:
            parts.append(f"no {side} bound of {feature}")
        else:
            is_closed = edit.get(f"{side}_closed", side == "upper")
            parts.append(f"{feature} {closed_sign if is_closed else open_sign} {edit[side]:.15g}")
    flags = {"lower_closed", "upper_closed", "missing"} & set(edit)
    if not parts:
        parts = [f"{name.replace('_', ' ')} {edit[name]} for {feature}" for name in sorted(flags)]
    scope = "only in" if edit.get("shared") is False else "in"
    return f"set {' and '.join(parts)} {scope} rule {edit['number']}"


def _describe_values(edit: Mapping[str, Any]) -> str:
    if edit["values"] is None:
        return f"remove the values of {edit['feature']} from rule {edit['number']}"
    sign = "not in" if edit.get("negated") else "in"
    listed = ", ".join(map(str, edit["values"]))
    return f"set {edit['feature']} {sign} {{{listed}}} in rule {edit['number']}"


def _describe_split(edit: Mapping[str, Any]) -> str:
    division = f"at {edit['bound']:.15g}" if "bound" in edit else f"by {edit['values']}"
    return f"split rule {edit['number']} on {edit['feature']} {division}"


def _describe_output(edit: Mapping[str, Any]) -> str:
    value = edit["output"]
    text = "a function" if isinstance(value, dict) else value
    return f"set the output of rule {edit['number']} to {text}"


#: Function that describes each edit.
_DESCRIPTIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "drop": lambda edit: f"drop rule {edit['number']}",
    "add": lambda edit: f"add a rule {edit.get('number', 'at the end')}",
    "move": lambda edit: f"move rule {edit['number']} to position {edit['to']}",
    "merge": lambda edit: f"merge rules {edit['first']} and {edit['second']}",
    "split": _describe_split,
    "set_bound": _describe_bound,
    "set_categories": _describe_values,
    "set_output": _describe_output,
    "set_fallback": lambda edit: f"predict {edit['output']} for uncovered rows",
    "forbid": lambda edit: f"forbid {edit['feature']}",
    "replace_rules": lambda edit: "replace all rules",
    "recount": lambda edit: "count the rows of all rules again",
}


def rules_data(rules: RuleSet) -> dict[str, Any]:
    """Return the JSON of rules as Python values."""
    data: dict[str, Any] = json.loads(rules.to_json(indent=None))
    return data


def rules_sha256(rules: RuleSet) -> str:
    """Return the hash that identifies rules in logs."""
    return sha256_of(rules_data(rules))


@dataclass(eq=False)
class EditHistory:
    """Rule sets before and after each edit, for undo and redo.

    Parameters
    ----------
    rules : RuleSet
        The rules before the first edit.
    """

    rules: RuleSet
    past: list[RuleSet] = field(default_factory=list)
    future: list[RuleSet] = field(default_factory=list)

    def apply(self, edit: Mapping[str, Any]) -> RuleSet:
        """Apply an edit, undo or redo, and return the resulting rules."""
        action = edit.get("action")
        if action in _HISTORY_ACTIONS:
            return self._undo_or_redo(str(action))
        edited = apply_edit(self.rules, edit)
        self.past.append(self.rules)
        self.future.clear()
        self.rules = edited
        return edited

    def _undo_or_redo(self, action: str) -> RuleSet:
        source, target = (self.past, self.future) if action == "undo" else (self.future, self.past)
        if not source:
            raise ValueError(f"There is no edit to {action}.")
        target.append(self.rules)
        self.rules = source.pop()
        return self.rules


def changed_lines(before: RuleSet, after: RuleSet) -> tuple[list[str], list[str]]:
    """Return the numbered lines that only `before` has, and the lines that only `after` has."""
    texts = [_lines(rules) for rules in (before, after)]
    removed, added = (
        [f"{n}. {line}" if n else line for n, line in one if line not in {t for _, t in other}]
        for one, other in (texts, texts[::-1])
    )
    if not removed and not added and before != after:  # only the order changed
        changed_positions = [i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b]
        removed, added = ([f"{t[i][0]}. {t[i][1]}" for i in changed_positions] for t in texts)
    return removed, added


def _lines(rules: RuleSet) -> list[tuple[int, str]]:
    """Return the numbered rules without statistics, and the fallback with number 0."""
    numeric = rules.task == "regression"
    lines = []
    for number, rule in enumerate(rules, start=1):
        premise = rule.premise_text(rules.feature_names)
        output = rule.output_text(rules.feature_names, numeric=numeric, domain=rules.domain)
        lines.append((number, f"IF {premise} THEN {output}" if premise else f"ALWAYS {output}"))
    if rules.fallback is not None:
        fallback = rules.fallback
        text = str(fallback.output) if fallback.policy == "default" else fallback.policy
        lines.append((0, f"otherwise, where no rule holds: {text}"))
    return lines


class EditLog:
    """Log of all edits of a rule set, from which the edited rules can be reconstructed.

    Parameters
    ----------
    rules : RuleSet
        The rules before the first edit.
    rows : mapping, optional
        Description of the rows on which effects were measured, as JSON values.

    Attributes
    ----------
    records : tuple of EditRecord
        The steps.
    seal : str
        Hash of the whole log. Store it elsewhere, for example in a signed document, to detect
        whether the log was rewritten.

    Notes
    -----
    Each step has the SHA-256 of its own content and of the hash of the previous step, and the file
    has the number of steps and the seal. This detects changes of any part, including removal of the
    last steps. A person who rewrites the log can also rewrite its hashes, its number of steps and
    its seal; then only a `seal` stored elsewhere reveals the change.

    Examples
    --------
    >>> from skescore.editing import EditLog, replay
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> log = EditLog(rules)
    >>> edit = {"action": "set_bound", "number": 1, "feature": "age", "upper": 18}
    >>> _ = log.append(edit, author="Ann", reason="the law", time="2026-01-05T09:00Z")
    >>> print(log)
    1. set age ≤ 18 in rule 1 by Ann at 2026-01-05T09:00Z, because the law
       - 1. IF age ≤ 17 THEN no
       + 1. IF age ≤ 18 THEN no
    >>> print(replay(log.to_json()))
    1. IF age ≤ 18 THEN no
    2. ELSE yes
    """

    def __init__(self, rules: RuleSet, rows: Mapping[str, Any] | None = None) -> None:
        self.start = rules
        self.rows = dict(rows or {})
        self.records: tuple[EditRecord, ...] = ()
        self._history = EditHistory(rules)

    @property
    def rules(self) -> RuleSet:
        """Rules after the last step."""
        return self._history.rules

    @property
    def history(self) -> EditHistory:
        """Rules before and after each edit, for undo and redo."""
        return self._history

    @property
    def seal(self) -> str:
        """Hash of the whole log."""
        return self.records[-1].sha256 if self.records else self._start_sha256

    @property
    def _start_sha256(self) -> str:
        return sha256_of(self._header)

    @property
    def _header(self) -> dict[str, Any]:
        return {
            "format": LOG_FORMAT,
            "version": LOG_VERSION,
            "rules": rules_data(self.start),
            "rows": self.rows,
        }

    def append(
        self,
        edit: Mapping[str, Any],
        *,
        author: str | None = None,
        reason: str | None = None,
        time: str,
    ) -> EditRecord:
        """Apply an edit to the rules and record it.

        Parameters
        ----------
        edit : mapping
            Edit as JSON, see :func:`apply_edit`.
        author, reason : str, optional
            Author of the edit, and reason for it.
        time : str
            Time of the edit, as ISO 8601.

        Returns
        -------
        EditRecord
            The new step.
        """
        before = self.rules
        after = self._history.apply(edit)
        removed, added = changed_lines(before, after)
        content: dict[str, Any] = {
            "step": len(self.records) + 1,
            "time": time,
            "author": author,
            "reason": reason,
            "edit": dict(edit),
            "before": removed,
            "after": added,
            "rules_sha256": rules_sha256(after),
        }
        record = EditRecord(**content, sha256=sha256_of(self.seal, content))
        self.records = (*self.records, record)
        return record

    def to_text(self) -> str:
        """Return all steps as text, with the lines that they changed."""
        return "\n".join(record.to_text() for record in self.records) or "no edits"

    def __str__(self) -> str:
        return self.to_text()

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the log as JSON."""
        data = {
            **self._header,
            "sha256": self._start_sha256,
            "steps": [asdict(record) for record in self.records],
            "n_steps": len(self.records),
            "seal": self.seal,
        }
        return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> EditLog:
        """Read a log and verify it.

        Parameters
        ----------
        text : str
            JSON of :meth:`to_json`.

        Returns
        -------
        EditLog
            The log, with the rules that its edits lead to.

        Raises
        ------
        EditLogError
            If a step was changed, added, removed or moved, or does not result in the stated rules.
            A log that was rewritten with all its hashes is accepted: compare its `seal`.
        """
        try:
            data = json_of(text, finite=True)
        except ValueError as error:
            raise EditLogError(f"A log of edits must be JSON: {error}.") from error
        if not isinstance(data, dict) or data.get("format") != LOG_FORMAT:
            raise EditLogError(
                f"This JSON is not a log of edits: its 'format' must be {LOG_FORMAT!r}. Use a log "
                "written by EditLog.to_json or `skescore edit --log`."
            )
        if data.get("version") != LOG_VERSION:
            raise EditLogError(
                f"The log has version {data.get('version')!r}; this skescore reads version "
                f"{LOG_VERSION}."
            )
        try:
            header = {name: data[name] for name in ("format", "version", "rules", "rows")}
            if sha256_of(header) != data["sha256"]:
                raise EditLogError("The rules before the first step were changed.")
            log = cls(RuleSet.from_json(json.dumps(data["rules"])), data["rows"])
            for number, step in enumerate(data["steps"], start=1):
                log._append_checked(number, step)
            log._check_end(data["n_steps"], data["seal"])
        except (KeyError, TypeError, AttributeError) as error:
            raise EditLogError(f"The log is damaged: {error!r}.") from error
        return log

    def _check_end(self, n_steps: Any, seal: Any) -> None:
        """Compare the number of steps and the seal with the values stated in the file."""
        if type(n_steps) is not int or n_steps != len(self.records):
            raise EditLogError(
                f"Steps were added or removed: the log has {len(self.records)}, but its 'n_steps' "
                f"is {n_steps!r}."
            )
        if seal != self.seal:
            raise EditLogError(
                f"The log was changed: its last hash is {self.seal}, but its 'seal' is {seal!r}."
            )

    def _append_checked(self, number: int, step: Mapping[str, Any]) -> None:
        """Replay one recorded step, and verify its hashes."""
        content = {name: value for name, value in step.items() if name != "sha256"}
        if step["step"] != number:
            raise EditLogError(
                f"Step {number} is missing or was moved: its number is {step['step']!r}."
            )
        if sha256_of(self.seal, content) != step["sha256"]:
            raise EditLogError(
                f"Step {number} was changed, or a step before it was removed or added: its hash "
                "does not match its content."
            )
        try:
            after = self._history.apply(step["edit"])
        except ValueError as error:
            raise EditLogError(f"Step {number} cannot be replayed: {error}") from error
        if rules_sha256(after) != step["rules_sha256"]:
            raise EditLogError(f"Step {number} does not result in the rules that the log states.")
        self.records = (*self.records, EditRecord(**step))


def replay(log: EditLog | str) -> RuleSet:
    """Verify a log and return the rules that result from its edits.

    Parameters
    ----------
    log : EditLog or str
        Log, or its JSON.

    Returns
    -------
    RuleSet
        The edited rules, bit-identical to those from which the log was written.

    Raises
    ------
    EditLogError
        If the log was changed, or does not result in the rules that it states.

    Examples
    --------
    >>> from skescore.editing import EditLog, replay
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> log = EditLog(rules)
    >>> edit = {"action": "set_bound", "number": 1, "feature": "age", "upper": 18}
    >>> _ = log.append(edit, time="2026-01-05T09:00:00+00:00")
    >>> replay(log.to_json().replace("18", "19"))
    Traceback (most recent call last):
    ...
    skescore.editing._log.EditLogError: Step 1 was changed, or a step before it was removed or \
added: its hash does not match its content.
    """
    return EditLog.from_json(log.to_json() if isinstance(log, EditLog) else log).rules
