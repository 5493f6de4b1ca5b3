"""Widget with the trade-off, the rules, rows to try and edits, synchronized with Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from skescore._optional import import_optional
from skescore.editing import EditLog
from skescore.report import embedded_page
from skescore.rules import RuleSet, as_ruleset
from skescore.tuning import ExtractorSearchCV

_PURPOSE = "The widget of rules"


class RulesWidget:
    """Widget that shows rules: choose a trade-off, try rows, edit rules, and use them in Python.

    The cell contains the page of :func:`skescore.report.write_report`. Selections and edits in the
    page are immediately available in Python, and changes in Python appear in the page.

    Parameters
    ----------
    source : ExtractorSearchCV, RuleSet or model
        A fitted search, rules, or a model that :func:`skescore.as_ruleset` reads.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows on which rules are measured and edited. A search has its own rows.
    y : array-like of shape (n_rows,), optional
        Labels or numbers of the rows.
    title : str, optional
        Title; by default the name of the data.
    black_box : estimator, optional
        Fitted black box of rules. A search has its own.
    time_limit : float, default=30.0
        Seconds after which no rules of further candidates are extracted for the slider.

    Attributes
    ----------
    widget : anywidget.AnyWidget
        The widget, for use in containers of ipywidgets.

    Raises
    ------
    ImportError
        If anywidget or jinja2 is not installed.

    Examples
    --------
    >>> from skescore.notebook import RulesWidget
    >>> widget = RulesWidget(search)  # doctest: +SKIP
    >>> widget  # doctest: +SKIP
    >>> widget.rules_.predict(X)  # doctest: +SKIP
    """

    def __init__(
        self,
        source: Any,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        black_box: Any = None,
        time_limit: float = 30.0,
    ) -> None:
        if not isinstance(source, ExtractorSearchCV):
            source = as_ruleset(source)
        anywidget = import_optional("anywidget", extra="notebook", purpose=_PURPOSE)
        page, content = embedded_page(
            source, X, y, title=title, black_box=black_box, time_limit=time_limit
        )
        self._views: Mapping[str, Any] = content["views"]
        self._start: RuleSet = source.rules_ if isinstance(source, ExtractorSearchCV) else source
        self._editing: Mapping[str, Any] | None = content["editing"]
        self.widget = _make_widget(anywidget, page, content["groups"][0]["winner"])

    @property
    def candidate(self) -> int | None:
        """Index of the selected candidate in `candidates_` of the search; None for rules."""
        index: int | None = self.widget.candidate
        return index

    @candidate.setter
    def candidate(self, index: int) -> None:
        if str(index) not in self._views:
            raise ValueError(
                f"candidate must be the index of a candidate whose rules are in the page, one of "
                f"{', '.join(self._views)}, got {index!r}."
            )
        with self.widget.hold_sync():
            self.widget.candidate = index
            self.widget.last_change = "candidate"

    @property
    def log_(self) -> EditLog:
        """Log of all edits, with verified hashes."""
        if self.widget.log:
            return EditLog.from_json(self.widget.log)
        return EditLog(self._start, {} if self._editing is None else self._editing["about"])

    @property
    def rules_(self) -> RuleSet:
        """Rules after the last change: the edited ones, or those of the selected candidate."""
        if self.widget.last_change == "log":
            return self.log_.rules
        if self.candidate is None:
            return self._start
        view = self._views.get(str(self.candidate))
        if view is None:
            raise ValueError(
                f"The rules of candidate {self.candidate} are not in the page. "
                f"search.choose(search.candidates_[{self.candidate}]) extracts them."
            )
        return RuleSet.from_json(json.dumps(view["set"]))

    def edit(
        self, edit: Mapping[str, Any], *, author: str | None = None, reason: str | None = None
    ) -> RuleSet:
        """Edit the rules from Python; the page shows the effect.

        Parameters
        ----------
        edit : mapping
            The edit, see :func:`skescore.editing.apply_edit`, ``{"action": "undo"}`` or
            ``{"action": "redo"}``.
        author, reason : str, optional
            Author of the edit, and reason for it.

        Returns
        -------
        RuleSet
            The edited rules.

        Raises
        ------
        ValueError
            If the edit cannot be applied, or the rules cannot be edited in the page.
        """
        if self._editing is None:
            raise ValueError(
                "These rules cannot be edited: the page needs rows (X and y), and rules that do "
                "not vote. skescore.editing.RuleEditor edits rules without the page."
            )
        log = self.log_
        time = datetime.now(UTC).isoformat(timespec="seconds")
        log.append(edit, author=author, reason=reason, time=time)
        history = log.history
        base = {
            "n_steps": len(log.records),
            "rules": _rules_data(log.rules),
            "past": [_rules_data(rules) for rules in history.past],
            "future": [_rules_data(rules) for rules in history.future],
        }
        with self.widget.hold_sync():
            self.widget.base = base
            self.widget.log = log.to_json()
            self.widget.last_change = "log"
        return log.rules

    def on_change(self, function: Callable[[RulesWidget], Any]) -> None:
        """Call a function with the widget after every selection or edit, in the page or in Python.

        Parameters
        ----------
        function : callable
            Function to call.
        """
        self.widget.observe(lambda _: function(self), names=["candidate", "log"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._start)} rules, {len(self.log_.records)} edits>"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self.widget._repr_mimebundle_(**options)
        return data | {"text/plain": repr(self)}, metadata


def _rules_data(rules: RuleSet) -> Any:
    return json.loads(rules.to_json(indent=None))


def _make_widget(anywidget: Any, page: str, candidate: int | None) -> Any:
    """Return an anywidget with the shared state: the page, the selection and the edits."""
    traitlets = import_optional("traitlets", extra="notebook", purpose=_PURPOSE)
    state = {
        "page": traitlets.Unicode(page),
        "candidate": traitlets.Int(candidate, allow_none=True),
        "log": traitlets.Unicode(""),
        "base": traitlets.Dict(None, allow_none=True),
        "last_change": traitlets.Unicode("candidate"),
    }
    script = files("skescore.notebook").joinpath("widget.js").read_text(encoding="utf-8")
    members = {name: trait.tag(sync=True) for name, trait in state.items()}
    return type("RulesWidgetView", (anywidget.AnyWidget,), {"_esm": script, **members})()
