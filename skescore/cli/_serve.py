"""``skescore serve``: a local page and an endpoint that predict rows with saved rules."""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys

from skescore._optional import import_optional
from skescore.cli._arguments import add_rules_argument, integer
from skescore.cli._rule_files import read_rules, stored_preparation

DESCRIPTION = """\
Serve saved rules on this machine: a page that predicts a row and shows the rule that predicts it,
and an endpoint for programs. POST /predict with {"rows": [{"age": 41, "city": "Rome"}, ...]}
returns the prediction and the rule of each row, or errors that name the column and the value.
Requests are neither stored nor logged. The command needs the extra 'serve'.
"""
EXAMPLES = """\
examples:
  skescore serve run/rules.json
  skescore serve run/rules.json --port 0
  curl -d '{"rows": [{"age": 41}]}' http://127.0.0.1:8000/predict
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_rules_argument(parser, "the rules, or the folder of a run")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1, which only this machine can reach)",
    )
    parser.add_argument(
        "--port",
        type=integer(0, 65_535),
        default=8000,
        metavar="N",
        help="port to listen on (default 8000; 0 chooses a free one)",
    )


def run(options: argparse.Namespace) -> str:
    """Run the command until it is interrupted."""
    ruleset = read_rules(options.rules)
    uvicorn = import_optional("uvicorn", extra="serve", purpose="Serving rules")
    from skescore.serving import LOCAL_HOSTS, make_app

    is_local = options.host in LOCAL_HOSTS
    app = make_app(
        ruleset,
        preparation=stored_preparation(options.rules, ruleset),
        hosts=LOCAL_HOSTS if is_local else ("*",),
    )
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        listener = socket.create_server((options.host, options.port), family=family)
    except OSError as error:
        raise ValueError(
            f"--host {options.host} --port {options.port} cannot be used: "
            f"{error.strerror or error}. Pass another --port; 0 chooses a free one."
        ) from error
    with listener:
        port = listener.getsockname()[1]
        name = f"[{options.host}]" if ":" in options.host else options.host
        if not is_local:
            sys.stderr.write("note: everyone who can reach this machine can query the rules\n")
        sys.stderr.write(f"serving {options.rules} at http://{name}:{port}/ (Ctrl+C stops it)\n")
        sys.stderr.flush()
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    return ""
