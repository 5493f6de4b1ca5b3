"""Records of checks for suspicious data, and of their reports."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Evidence", "Suspicion", "SuspicionCheck", "SuspiciousDataWarning"]


class SuspiciousDataWarning(UserWarning):
    """Warning about suspicious data or results.

    Use it as a category to ignore these warnings, or to turn them into errors.

    Examples
    --------
    >>> import warnings
    >>> from skescore.suspicions import SuspiciousDataWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", SuspiciousDataWarning)
    """

    __module__ = "skescore.suspicions"


@dataclass(frozen=True)
class Evidence:
    """Observation of a check, with the options that solve the problem.

    Parameters
    ----------
    text : str
        Observation with its figures, as a clause that begins a sentence.
    subject : str, optional
        Affected column.
    options : tuple of str, default=()
        Command-line options that solve the problem, such as ``("--drop", "weight")``.
    omitted : str, default=""
        Command-line option without which the problem does not occur, such as ``"--test"``.
    """

    text: str
    subject: str | None = None
    options: tuple[str, ...] = ()
    omitted: str = ""


@dataclass(frozen=True)
class SuspicionCheck:
    """Declaration of a check for suspicious data or results.

    Parameters
    ----------
    name : str
        Name of the check, such as ``"leakage"``.
    when : str
        Condition under which the check reports a suspicion, in words.
    facts : type
        Class of the facts that the check examines: :class:`TableFacts` or :class:`ResultFacts`.
    find : callable
        Function of the facts that yields the evidence.
    remedy : str
        Recommended action; ``{subject}`` is replaced by the column.
    """

    name: str
    when: str
    facts: type
    find: Callable[[Any], Iterable[Evidence]] = field(repr=False)
    remedy: str

    def report(self, facts: Any) -> list[Suspicion]:
        """Return the suspicions that the check reports about these facts.

        Parameters
        ----------
        facts : TableFacts or ResultFacts
            The facts.

        Returns
        -------
        list of Suspicion
            One suspicion for each piece of evidence.
        """
        return [
            Suspicion(
                self.name,
                evidence.text,
                self.remedy.format(subject=repr(evidence.subject)),
                evidence.subject,
                evidence.options,
                evidence.omitted,
            )
            for evidence in self.find(facts)
        ]


@dataclass(frozen=True)
class Suspicion:
    """Suspicious data or a suspicious result, with its evidence and a remedy.

    Parameters
    ----------
    name : str
        Name of the check in :data:`SUSPICION_CHECKS`, such as ``"leakage"``.
    evidence : str
        Observation.
    remedy : str
        Recommended action.
    subject : str, optional
        Affected column.
    options : tuple of str, default=()
        Command-line options that solve the problem.
    omitted : str, default=""
        Command-line option without which the problem does not occur.

    Examples
    --------
    >>> from skescore.suspicions import Suspicion
    >>> suspicion = Suspicion("leakage", "'a' equals 'y'", "Leave it out", "a", ("--drop", "a"))
    >>> str(suspicion)
    "'a' equals 'y'. Leave it out (on the command line: --drop a)."
    >>> suspicion.with_command(["skescore", "tune", "t.csv", "--target", "y"])
    "'a' equals 'y'. Leave it out: skescore tune t.csv --target y --drop a"
    """

    name: str
    evidence: str
    remedy: str
    subject: str | None = None
    options: tuple[str, ...] = ()
    omitted: str = ""

    def __str__(self) -> str:
        without = f"without {self.omitted}" if self.omitted else ""
        words = ", ".join(filter(None, (shlex.join(self.options), without)))
        options = f" (on the command line: {words})" if words else ""
        return f"{self.evidence}. {self.remedy}{options}."

    def with_command(self, command: Sequence[str]) -> str:
        """Return the text with the complete command that solves the problem.

        Parameters
        ----------
        command : sequence of str
            Words of the command that the user ran.

        Returns
        -------
        str
            One or two sentences.
        """
        if not self.options and not self.omitted:
            return f"{self.evidence}. {self.remedy}."
        words = list(command)
        for option_name in filter(None, (*_TRIAL_OPTIONS, self.omitted)):
            words = _without_option(words, option_name)
        for option in self.options:
            for name in (option, *_REPLACED_WITH.get(option, ())):
                if name.startswith("--") and name not in _REPEATABLE:
                    words = _without_option(words, name)
        # The folder of the first run already contains its results.
        overwrites = any(word.partition("=")[0] == "--output" for word in words)
        extra = ["--overwrite"] if overwrites and "--overwrite" not in words else []
        return f"{self.evidence}. {self.remedy}: {shlex.join([*words, *self.options, *extra])}"


#: Options that refer to the trials of the search, which a search with other options cannot use.
_TRIAL_OPTIONS = ("--storage", "--study", "--pick")
#: Options that may be repeated.
_REPEATABLE = ("--drop", "--category", "--numeric", "--na-values")
#: Options that an option replaces, because it excludes them.
_REPLACED_WITH = {"--scoring": ("--reference", "--performance")}


def _without_option(words: list[str], option: str) -> list[str]:
    """Return the words of a command without an option and its value."""
    kept_words: list[str] = []
    skips_value = False
    for word in words:
        if not skips_value and word != option and not word.startswith(f"{option}="):
            kept_words.append(word)
        skips_value = not skips_value and word == option
    return kept_words
