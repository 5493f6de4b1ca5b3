"""Local web page and JSON endpoint that predict rows with rules and show the deciding rule.

``skescore serve RULES`` runs the application of :func:`make_app` on this machine only. No request
is stored or logged.
"""

from skescore.serving._app import LOCAL_HOSTS, make_app
from skescore.serving._rows import RowError, RowReader

__all__ = ["LOCAL_HOSTS", "RowError", "RowReader", "make_app"]
