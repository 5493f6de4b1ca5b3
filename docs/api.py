"""Generate the reference of the public names as HTML pages from their docstrings.

    python docs/api.py [FOLDER]

Needs pdoc: `tox -e docs` installs it and writes to `docs/api/`.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import pdoc

import skescore


def public_modules() -> list[str]:
    """The package and its public modules; the command line has `docs/cli.md`."""
    found = ["skescore"]
    for module in pkgutil.walk_packages(skescore.__path__, "skescore."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts) and parts[1] != "cli":
            found.append(module.name)
    return found


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("api"))
    names = public_modules()
    for name in names:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            # Names that are imported when they are first used: pdoc looks for them in the module.
            setattr(module, public, getattr(module, public))
    pdoc.render.configure(docformat="numpy", math=False, search=True)
    with warnings.catch_warnings():
        # Modules that pdoc finds by itself as well, and types that only a parent's module names.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*does not resolve")
        pdoc.pdoc(*names, output_directory=folder)
    print(f"{len(names)} modules in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
