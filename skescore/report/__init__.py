"""A run as one page: a self-contained HTML file in which weights can be moved and rows tried."""

from skescore.report._page import write_report

__all__ = ["write_report"]
