"""A run as one page: a self-contained HTML file in which users change weights and try rows."""

from skescore.report._alternatives import alternatives_record
from skescore.report._candidates_file import SavedCandidates, candidates_json, read_candidates
from skescore.report._notebook import candidates_html, search_html
from skescore.report._page import embedded_page, write_report
from skescore.report._rule_views import rule_view

__all__ = [
    "SavedCandidates",
    "alternatives_record",
    "candidates_html",
    "candidates_json",
    "embedded_page",
    "read_candidates",
    "rule_view",
    "search_html",
    "write_report",
]
