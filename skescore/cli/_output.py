"""Output of results as text, Markdown or JSON, and of notes on standard error."""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skescore._text import listed, plural

#: Categories of warnings that are addressed to programmers.
_NOT_FOR_USERS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)
_MAX_WARNINGS = 3
#: Largest number of further columns for which a repeated conversion has a line of its own.
_MAX_ALIKE = 3
#: Name of the column in a note, and number of cells; such notes are alike in everything else.
_COLUMN = re.compile(r"\bcolumn ('.*?'|\".*?\")")
_N_CELLS = re.compile(r"\d+ (rows?|cells?)\b")


def number(value: float | None, digits: int = 3) -> str:
    """Write a number for a table, with fewer decimals if it is large; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    size, value = abs(value), value + 0.0  # without the sign of -0.0
    if not math.isfinite(value) or size >= 1e6 or 0 < size < 10**-digits:
        return f"{value:.{digits}g}"
    return f"{value:.{max(0, digits - max(0, len(str(int(size))) - 1))}f}"


def json_ready(value: Any) -> Any:
    """Convert values for JSON: NumPy scalars, tuples, and NaN to null."""
    if isinstance(value, dict):
        return {str(k): json_ready(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """Write a result as JSON."""
    return json.dumps(json_ready(value), indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n"


def json_for_stdout(value: Any) -> str:
    """Write a result as JSON that is valid in the encoding of standard output."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return to_json(value, ascii_only=codecs.lookup(encoding).name != "utf-8")


def printable(text: str) -> str:
    """Escape control characters of labels and names, which could control the terminal."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda c: repr(c[0])[1:-1], text)


class Printer:
    """Collector of the sections of a result as text or Markdown.

    Text is wrapped on a terminal or if COLUMNS is set. Elsewhere, lines are not wrapped, so that
    other programs find each row in one line.
    """

    def __init__(self, markdown: bool) -> None:
        from rich.console import Console

        self.markdown = markdown
        self._blocks: list[str] = []
        terminal = Console(file=sys.stdout)
        self._bold = terminal.is_terminal and not (
            markdown or terminal.is_dumb_terminal or terminal.legacy_windows
        )
        has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
        self.width = max(40, shutil.get_terminal_size().columns) if has_width else None

    def text(self) -> str:
        """Return the text of all sections."""
        return "".join(self._blocks)

    def line(self, text: str) -> None:
        """Add a paragraph."""
        text = printable(text).replace("\n", "\\n")
        if self.markdown:
            text = re.sub(r"([\\`*<|\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", text) + "\n"
        elif self.width is not None:
            text = textwrap.fill(text, self.width, break_on_hyphens=False)
        self._blocks.append(text + "\n")

    def heading(self, text: str) -> None:
        """Add the heading of a section."""
        if not self.markdown:
            self._blocks.append("\n")
        start = len(self._blocks)
        self.line(text)
        if self.markdown:
            self._blocks[start] = "## " + self._blocks[start]
        elif self._bold:
            self._blocks[start] = f"\x1b[1m{self._blocks[start][:-1]}\x1b[0m\n"

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()
    ) -> None:
        """Add a table; columns named in `left` are aligned to the left.

        On a narrow terminal, the last column is printed below each row, or, if that is not enough,
        every row becomes a sentence.
        """
        from rich.cells import cell_len

        grid = [[printable(c).replace("\n", "\\n") for c in row] for row in (columns, *rows)]
        if self.markdown:
            lines = [[c.replace("|", "\\|") for c in row] for row in grid]
            lines.insert(1, [":--" if name in left else "--:" for name in columns])
            self._blocks += [f"| {' | '.join(row)} |\n" for row in lines] + ["\n"]
            return
        widths = [max(map(cell_len, cells)) for cells in zip(*grid, strict=True)]
        room = math.inf if self.width is None else self.width
        if sum(widths[:-1]) + 2 * (len(widths) - 2) > room:
            labeled_rows = [zip(columns, row, strict=True) for row in grid[1:]]
            self._blocks += [
                self._wrap(", ".join(f"{name} {cell}".strip() for name, cell in row))
                for row in labeled_rows
            ]
            return
        fits = sum(widths) + 2 * (len(widths) - 1) <= room
        for row in grid:
            cells = [
                cell + pad if name in left else pad + cell
                for name, cell, width in zip(columns, row, widths, strict=True)
                for pad in [" " * (width - cell_len(cell))]
            ]
            row_cells = cells if fits else cells[:-1]
            self._blocks.append("  ".join(row_cells).rstrip() + "\n")
            if not fits:
                self._blocks.append(self._wrap("   " + row[-1]))

    def _wrap(self, text: str) -> str:
        """Wrap text to the width, and indent all lines but the first."""
        return (
            textwrap.fill(text, self.width or 80, subsequent_indent="   ", break_on_hyphens=False)
            + "\n"
        )

    def verbatim(self, text: str) -> None:
        """Add text with its line breaks."""
        fence = "```"
        while fence in text:
            fence += "`"
        text = printable(text)
        self._blocks.append(f"{fence}text\n{text}\n{fence}\n\n" if self.markdown else text + "\n")


class Notes:
    """Notes for the user: written to standard error immediately, and collected for the files."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.texts: list[str] = []
        self._n_warnings = 0

    def add(self, text: str, *, is_shown: bool = True) -> None:
        """Add a note."""
        self.texts.append(text)
        if is_shown and not self.quiet:
            sys.stderr.write(printable(f"skescore: note: {text}\n"))

    def warn(self, text: str, *, is_shown: bool = True) -> None:
        """Add a warning about suspicious data or results, before all notes."""
        self.texts.insert(self._n_warnings, text)
        self._n_warnings += 1
        if is_shown and not self.quiet:
            sys.stderr.write(printable(f"skescore: warning: {text}\n"))

    def add_drift(
        self, differences: Sequence[str], outside: Sequence[str], unused: Sequence[str]
    ) -> None:
        """Add notes on differences from the training rows; see `differences_from_training`."""
        for text in differences:
            self.warn(text)
        if outside:
            self.add(f"values outside the range of the training rows: {', '.join(outside)}")
        if unused:
            self.add(f"in columns that no rule uses: {'; '.join(unused)}")

    def add_findings(self, name: str, texts: Sequence[str]) -> None:
        """Add the findings about a table in one message."""
        texts = _merge_alike(texts)
        self.texts += texts
        if texts and not self.quiet:
            lines = "".join(f"\n  - {text}" for text in texts)
            sys.stderr.write(printable(f"skescore: note: about {name}:{lines}\n"))

    @contextmanager
    def instead_of_warnings(self, *ignored: str) -> Iterator[None]:
        """Replace the warnings of the block by notes, which count equal warnings.

        Warnings that match one of the regular expressions in `ignored` are omitted.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for category in _NOT_FOR_USERS:
                warnings.simplefilter("ignore", category)
            for message in ignored:
                warnings.filterwarnings("ignore", message)
            try:
                yield
            finally:
                self._add_warnings(caught)

    def _add_warnings(self, caught: Sequence[warnings.WarningMessage]) -> None:
        """Add each different warning once; only the most frequent ones are shown."""
        messages = [
            f"{'' if w.category is UserWarning else f'{w.category.__name__}: '}{w.message}"
            for w in caught
        ]
        for position, (text, count) in enumerate(Counter(messages).most_common()):
            suffix = "" if count == 1 else f" ({count} times)"
            self.add(f"{text.strip()}{suffix}", is_shown=position < _MAX_WARNINGS)
        n_more = len(set(messages)) - _MAX_WARNINGS
        if n_more > 0 and not self.quiet:
            sys.stderr.write(
                f"skescore: note: {plural(n_more, 'further warning')}; --format json lists all\n"
            )


def _merge_alike(findings: Sequence[str]) -> list[str]:
    """Merge findings about many columns that differ only in the name and the number of cells."""
    groups: dict[object, list[tuple[str, Any]]] = {}
    for position, finding in enumerate(findings):
        name = _COLUMN.search(finding)
        column = getattr(finding, "column", name and name[1][1:-1])
        pattern = _N_CELLS.sub("", finding.replace(repr(column), ""))
        groups.setdefault(position if column is None else pattern, []).append((finding, column))
    messages: list[str] = []
    for (first_finding, _), *others in groups.values():
        if len(others) < _MAX_ALIKE:
            messages += [first_finding, *(finding for finding, _ in others)]
        else:
            names = listed([column for _, column in others], 5)
            messages.append(f"{first_finding}; likewise in {len(others)} other columns: {names}")
    return messages


def check_encoding(text: str, form: str) -> None:
    """Raise an error if the encoding of standard output lacks characters of a text."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Standard output has the encoding {encoding}, which lacks {text[error.start]!r}, so "
            f"the meaning of the {form} would change. Write it to a file with --output FILE, or "
            "set PYTHONIOENCODING=utf-8."
        ) from error
