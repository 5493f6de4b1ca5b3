"""List of all checks for suspicious data and results."""

from __future__ import annotations

from collections.abc import Iterable

from skescore.suspicions import _result_checks as results
from skescore.suspicions import _table_checks as tables
from skescore.suspicions._facts import ResultFacts, TableFacts
from skescore.suspicions._record import Suspicion, SuspicionCheck

__all__ = ["SUSPICION_CHECKS", "count_reports", "find_suspicions"]

#: All checks, the most serious first.
SUSPICION_CHECKS = (
    SuspicionCheck(
        name="leakage",
        when="one feature alone determines the target: classes in at least 99 % of the rows and "
        "with at most a tenth of the errors of a constant, numbers with an R² of at least 0.985",
        facts=TableFacts,
        find=tables.find_leaks,
        remedy="If {subject} is unknown at the time of a prediction, leave it out",
    ),
    SuspicionCheck(
        name="identifier_target",
        when="an identifier, which should carry no information, determines the target",
        facts=TableFacts,
        find=tables.find_identifier_targets,
        remedy="Do not use {subject} as a feature, and check whether other columns reveal the "
        "order of the rows as well",
    ),
    SuspicionCheck(
        name="duplicated_rows",
        when="at least 5 % of the rows repeat an earlier one, far more than by chance",
        facts=TableFacts,
        find=tables.find_duplicates,
        remedy="Copies are in the training rows and in the held-out rows, so scores are too "
        "optimistic; keep them together by a column of groups, or leave them out",
    ),
    SuspicionCheck(
        name="contradictory_rows",
        when="at least 1 % of the rows have the same features as a row of another class, far more "
        "than by chance",
        facts=TableFacts,
        find=tables.find_contradictory_rows,
        remedy="Decide which label is right, or add a column that distinguishes these rows",
    ),
    SuspicionCheck(
        name="repeated_groups",
        when="an identifier, or a number without order, occurs in several rows, and these rows "
        "resemble each other",
        facts=TableFacts,
        find=tables.find_repeated_groups,
        remedy="Rows of one {subject} are in the training rows and in the held-out rows, so scores "
        "are too optimistic for other values of {subject}; keep such rows together",
    ),
    SuspicionCheck(
        name="shuffled_time",
        when="rows are in chronological order, and folds ignore this order",
        facts=TableFacts,
        find=tables.find_shuffled_time,
        remedy="If {subject} is the time at which rows were recorded, held-out rows lie between "
        "training rows, so scores are too optimistic for the future; hold out later rows instead",
    ),
    SuspicionCheck(
        name="integer_codes",
        when="an integer feature, or the target, is named like a code, or its values matter but "
        "their order does not",
        facts=TableFacts,
        find=tables.find_integer_codes,
        remedy="If they are codes without a meaningful order, read them as categories",
    ),
    SuspicionCheck(
        name="class_names",
        when="two class names differ in case, blanks or one letter, and one of them is rare",
        facts=TableFacts,
        find=tables.find_class_names,
        remedy="If they mean the same class, give them one name",
    ),
    SuspicionCheck(
        name="few_rows",
        when="there are fewer than 30 rows",
        facts=TableFacts,
        find=tables.find_few_rows,
        remedy="Scores of so few rows vary widely by chance; collect more rows, or repeat the "
        "cross-validation",
    ),
    SuspicionCheck(
        name="few_test_rows",
        when="there are fewer than 30 test rows",
        facts=TableFacts,
        find=tables.find_few_test_rows,
        remedy="Scores of so few rows vary widely by chance; test on more rows, or rely on "
        "the held-out rows of the cross-validation, which are all rows of the table",
    ),
    SuspicionCheck(
        name="test_rows_in_training",
        when="at least 5 % of the test rows are among the training rows, far more than by chance",
        facts=TableFacts,
        find=tables.find_repeated_test_rows,
        remedy="Test scores are too optimistic; leave these rows out of the test",
    ),
    SuspicionCheck(
        name="no_better_than_constant",
        when="the model predicts the target no better than a constant: by accuracy and by "
        "balanced accuracy, or by R²",
        facts=ResultFacts,
        find=results.find_useless_black_box,
        remedy="The rules of such a model do not describe the target; use columns that are related "
        "to the target, or another model",
    ),
    SuspicionCheck(
        name="low_fidelity",
        when="the rules agree with the model on less than 80 % of unseen rows, or with an R² "
        "below 0.6",
        facts=ResultFacts,
        find=results.find_low_fidelity,
        remedy="Such rules do not describe the model well; search for agreement with it, and "
        "allow more rules",
    ),
)


def count_reports(suspicions: Iterable[Suspicion]) -> dict[str, int]:
    """Count the suspicions that each check reported.

    Parameters
    ----------
    suspicions : iterable of Suspicion
        Suspicions that the checks reported.

    Returns
    -------
    dict of str to int
        Number of suspicions, 0 or more, by the name of each check. The entry with this name in
        :data:`SUSPICION_CHECKS` states in `when` what the check reports.

    Examples
    --------
    >>> from skescore.suspicions import Suspicion, count_reports
    >>> reports = count_reports([Suspicion("leakage", "'a' equals 'y'", "Leave it out")])
    >>> reports["leakage"], reports["few_rows"]
    (1, 0)
    """
    names = [suspicion.name for suspicion in suspicions]
    return {check.name: names.count(check.name) for check in SUSPICION_CHECKS}


def find_suspicions(*facts: TableFacts | ResultFacts) -> list[Suspicion]:
    """Run all checks on a table or a result; return the suspicions, the most serious first.

    Parameters
    ----------
    *facts : TableFacts or ResultFacts
        Facts about rows or about a result.

    Returns
    -------
    list of Suspicion
        Suspicions in the order of `SUSPICION_CHECKS`.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.suspicions import TableFacts, find_suspicions
    >>> weight = np.linspace(1000.0, 4000.0, 200)
    >>> facts = TableFacts.from_arrays(weight[:, None], weight < 2500, "classification")
    >>> print(find_suspicions(facts)[0])
    'x0' alone determines 'y' in 200 of 200 rows (always predicting True: 100). If 'x0' is
    unknown at the time of a prediction, leave it out (on the command line: --drop x0).
    """
    return [
        suspicion
        for check in SUSPICION_CHECKS
        for fact in facts
        if isinstance(fact, check.facts)
        for suspicion in check.report(fact)
    ]
