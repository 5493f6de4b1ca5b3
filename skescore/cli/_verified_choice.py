"""Options of `skescore tune` that verify the rules, and limit their disagreement with the model."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, Any

from skescore._io import write_atomically
from skescore._quantities import DISAGREEMENT, MAX_DISAGREEMENT
from skescore.cli import _arguments as arguments

if TYPE_CHECKING:
    from skescore.tuning import ExtractorSearchCV
    from skescore.verification import VerifiedChoice

__all__ = [
    "VERIFICATION",
    "add_verification_options",
    "check_verification_options",
    "choice_record",
    "choice_text",
    "verify_winner",
    "write_verification",
]

#: File that a verification adds to the folder of a run.
VERIFICATION = "verification.json"
#: Default time of a verification in seconds.
_SECONDS = 20.0


def add_verification_options(group: Any) -> None:
    """Add the options of verification."""
    group.add_argument(
        "--verify",
        type=arguments.number_above(0),
        metavar="SECONDS",
        help="time for bounding the disagreement of the best rules with the model, see `skescore "
        f"verify`; with --output, {VERIFICATION} holds the result, which the report shows",
    )
    group.add_argument(
        "--max-disagreement",
        type=arguments.number_above(0),
        metavar="SHARE",
        help=f"{MAX_DISAGREEMENT.help}; each takes --verify SECONDS (default {_SECONDS:g}); exit "
        "code 1 if none does",
    )
    group.add_argument(
        "--witnesses",
        action="store_true",
        help="if no candidate satisfies --max-disagreement, take the one with the least "
        "disagreement, and extract its rules again from the training rows and generated rows on "
        "which rules and model disagree",
    )


def check_verification_options(options: argparse.Namespace) -> None:
    """Report options that do not go together."""
    if options.max_disagreement is None:
        if options.witnesses:
            options.parser.error("argument --witnesses: needs --max-disagreement")
        return
    for name in ("pick", "from_run"):
        if getattr(options, name) is not None:
            option = {"pick": "--pick", "from_run": "--from"}[name]
            options.parser.error(
                f"argument --max-disagreement: goes without {option}, which decides about the "
                "rules; to verify them, use --verify"
            )


def verify_winner(options: argparse.Namespace, search: ExtractorSearchCV) -> VerifiedChoice | None:
    """Verify the winner, or the first candidate within the limit; None without the options."""
    from skescore.verification import VerificationLimits, choose_verified

    if options.verify is None and options.max_disagreement is None:
        return None
    limits = VerificationLimits(time_limit=options.verify or _SECONDS)
    try:
        choice = choose_verified(
            search,
            max_disagreement=options.max_disagreement,
            use_witnesses=options.witnesses,
            limits=limits,
            random_state=options.seed,
        )
    except ValueError as error:  # the rules of the search are not lost
        options.exit_code = 1
        sys.stderr.write(f"skescore: error: the rules are not verified. {error}\n")
        return None
    if not choice.is_within_limit:
        options.exit_code = 1
        limit = MAX_DISAGREEMENT.text.format(value=options.max_disagreement)
        sys.stderr.write(
            f"skescore: error: none of {choice.n_verified} verified candidates has {limit}; the "
            "one with the least is shown. Allow more rules, or a larger --max-disagreement.\n"
        )
    return choice


def choice_record(choice: VerifiedChoice) -> dict[str, Any]:
    """Return the verification for the result of the search."""
    result = choice.verification
    upper = choice.disagreement
    return {
        DISAGREEMENT.name: None if math.isnan(upper) else upper,
        "near": result.near_disagreement.to_dict(),
        "volume": result.volume_disagreement.to_dict(),
        "engine": result.engine,
        "candidates_verified": choice.n_verified,
        "candidates_failed": [
            {"extractor": extractor, "trial": trial, "reason": reason}
            for (extractor, trial), reason in choice.failures.items()
        ],
        "is_within_limit": choice.is_within_limit,
    }


def choice_text(choice: VerifiedChoice) -> str:
    """Describe the verification in a sentence."""
    result = choice.verification
    how = "proofs and samples" if result.engine == "leaf boxes" else "samples only"
    return (
        f"verified ({how}): rules and model disagree near the data in {result.near_disagreement}, "
        f"in the domain by volume in {result.volume_disagreement}"
    )


def write_verification(options: argparse.Namespace, choice: VerifiedChoice | None) -> None:
    """Write the verification beside the rules, or remove that of an earlier run."""
    path = options.output / VERIFICATION
    if choice is None:
        path.unlink(missing_ok=True)
        return
    write_atomically(path, choice.verification.to_json() + "\n")
    if not options.quiet:
        sys.stderr.write(f"wrote {path}\n")
