"""How the site is built: `tox -e docs`.

The reference is generated from the ``__all__`` of every public package, so that it cannot lag; the
Python programs of the guide are run while the pages are read, and their output is shown.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pkgutil
import re
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes

import skescore

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "skescore"
author = "The skescore developers"
project_copyright = author
release = version = metadata.version("skescore")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "gallery/**/*.ipynb", "gallery/**/*.py"]
exclude_patterns += ["sg_*.rst", "gallery/sg_*"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
nitpicky = True
default_role = "code"
highlight_language = "python"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "skescore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Doctests of the pages; those of docstrings are run by `tox -e doctest`.
doctest_test_doctest_blocks = ""
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "min_reported_time": 5,
    "show_signature": False,
    "default_thumb_file": str(HERE / "images" / "trade_off.png"),
}

#: What other projects document: their sites are not asked while this one is built.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|pandas|pd|scipy|sklearn|optuna|matplotlib|polars|joblib)\..*"),
    (r"py:attr", r"[a-z_]+"),  # described among the parameters of its class, without a place there
]


# The reference ------------------------------------------------------------------------------------


def public_packages() -> list[str]:
    """Return the package and its public modules; the command line has a page of its own."""
    found = ["skescore"]
    for module in pkgutil.walk_packages(skescore.__path__, "skescore."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts) and parts[1] != "cli":
            found.append(module.name)
    return found


def _homes() -> dict[str, list[str]]:
    """Return the names that each package documents: those that no shorter path leads to."""
    taken: dict[Any, str] = {}
    homes: dict[str, list[str]] = {}
    names = [name for name in public_packages() if name != "skescore"]
    for package in sorted(names, key=lambda name: (name.count("."), name)):
        module = importlib.import_module(package)
        homes[package] = []
        for name in sorted(getattr(module, "__all__", ()), key=str.lower):
            thing = getattr(module, name)
            key = (name, id(thing))
            if key not in taken and not inspect.ismodule(thing):
                taken[key] = package
                homes[package].append(name)
    return {package: found for package, found in homes.items() if found}


HOMES = _homes()
PLACES: dict[str, set[str]] = {}
for _package, _names in HOMES.items():
    for _name in _names:
        PLACES.setdefault(_name, set()).add(f"{_package}.{_name}")


def write_reference(app: Any, config: Any) -> None:
    """Write one page per public package and an index into ``docs/api``."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    offered = ", ".join(f":py:obj:`{name}`" for name in skescore.__all__[1:])
    index = ["API reference", "=============", ""]
    index += ["All public names, by the package that they are imported from.", ""]
    index += [f"``skescore`` itself offers the most frequent ones: {offered}.", ""]
    index += [".. toctree::", "   :hidden:", ""]
    table = ["", ".. list-table::", "   :widths: 30 70", ""]
    for package, names in HOMES.items():
        summary = (importlib.import_module(package).__doc__ or "").strip().split("\n\n")[0]
        line = "=" * len(package)
        page = [package, line, "", " ".join(summary.split()), ""]
        page += [f".. currentmodule:: {package}", "", ".. autosummary::", "   :toctree: generated"]
        page += ["   :nosignatures:", "", *(f"   {name}" for name in names), ""]
        _write(folder / f"{package}.rst", "\n".join([f".. module:: {package}", "", *page]))
        index.append(f"   {package}")
        table += [f"   * - :doc:`{package}`", f"     - {' '.join(summary.split())}"]
    _write(folder / "index.rst", "\n".join([*index, *table, ""]))


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def skip_what_others_wrote(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out members that a class has from scikit-learn or from Python."""
    function = inspect.unwrap(getattr(thing, "fget", None) or getattr(thing, "__func__", thing))
    home = getattr(function, "__module__", None)
    return True if callable(function) and not (home or "").startswith("skescore") else None


def constants_as_commented(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Give a constant the ``#:`` comment that stands above it, wherever that is."""
    if what != "data":
        return
    package, _, constant = name.rpartition(".")
    root = Path(skescore.__file__).parent
    for file in sorted(root.rglob("*.py")):
        found = re.search(
            rf"((?:^#: ?.*\n)+){constant}\b", file.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        if found:
            lines[:] = [line.removeprefix("#:").strip() for line in found[1].splitlines()]
            return
    lines[:] = [f"A constant of {package}."]


def find_public(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve names by which docstrings call public things: bare, or by another path to them."""
    target = node.get("reftarget", "")
    for name in _candidates(target):
        found = env.get_domain("py").objects.get(name)
        if found is not None:
            return app.builder and nodes.reference(
                "",
                "",
                contnode,
                internal=True,
                refuri=app.builder.get_relative_uri(env.current_document.docname, found.docname)
                + f"#{found.node_id}",
            )
    return None


def _candidates(target: str) -> list[str]:
    parts = target.split(".")
    found = []
    for i, part in enumerate(parts):
        rest = "".join(f".{later}" for later in parts[i + 1 :])
        found += [place + rest for place in sorted(PLACES.get(part, ()), key=len)]
    return found


# Pages from elsewhere in the repository -----------------------------------------------------------

#: Files that the site shows too, and what they are called there.
COPIES = {
    ROOT / "CONTRIBUTING.md": "contributing",
    ROOT / "SECURITY.md": "security",
    ROOT / "CODE_OF_CONDUCT.md": "code_of_conduct",
    ROOT / "benchmarks" / "README.md": "benchmarks",
    ROOT / "benchmarks" / "paper" / "README.md": "papers",
    ROOT / "benchmarks" / "paper" / "tables.md": "papers_tables",
}


def site_links(text: str, origin: Path, folder: Path) -> str:
    """Turn links that lead somewhere in the repository into links that do so in the site."""

    def turned(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        file = (origin / target).resolve()
        if "://" in target or not file.exists():
            return match[0]
        if file.is_dir():
            return label
        if file in COPIES:
            return f"[{label}](/project/{COPIES[file]}.md{anchor})"
        kept = os.path.relpath(file, folder)
        if file.suffix == ".md" and HERE not in file.parents:
            return f"[{label}](<path:{kept}>)"
        return f"[{label}]({kept}{anchor})"

    return re.sub(r"\[([^\]\[]*)\]\(([^)#\s]+)(#[^)\s]+)?\)", turned, text)


def copy_pages(app: Any, config: Any) -> None:
    """Write the pages from elsewhere into ``docs/project``."""
    folder = HERE / "project"
    folder.mkdir(exist_ok=True)
    for file, name in COPIES.items():
        text = file.read_text(encoding="utf-8")
        if "\n## " not in text:
            text = text.replace("\n### ", "\n## ")
        _write(folder / f"{name}.md", site_links(text, file.parent, folder))


def links_of_a_page(app: Any, docname: str, source: list[str]) -> None:
    """Let the links of a hand-written page lead somewhere in the site."""
    page = HERE / f"{docname}.md"
    if page.exists() and not docname.startswith("project/"):
        source[0] = site_links(source[0], page.parent, page.parent)


# Programs of the guide ----------------------------------------------------------------------------


def run_programs(app: Any, doctree: Any) -> None:
    """Run the Python programs of a page of the guide; what they print is shown below them.

    One after the other, as they are read: a name stays known on its page.
    """
    page = app.env.current_document.docname
    if not page.startswith(("guide/", "index")) or app.builder.name != "html":
        return
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") != "python":
            continue
        shown = _run(block.astext(), page, names)
        if shown:
            output = nodes.literal_block(shown, shown, language="text", classes=["output"])
            block.parent.insert(block.parent.index(block) + 1, output)


def _run(program: str, page: str, names: dict[str, Any]) -> str:
    import optuna

    before, here = optuna.logging.get_verbosity(), os.getcwd()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        os.chdir(folder)  # what a program writes is not to be met by the next one
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(program, page, "exec"), names)
        finally:
            os.chdir(here)
            optuna.logging.set_verbosity(before)
    return out.getvalue().rstrip()


def describe_thumbnails(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:
    """Use the descriptions of the gallery's programs as alternative texts of their pictures."""
    if page.startswith("gallery/"):
        empty = r'tooltip="([^"]*)"><img alt=""'
        context["body"] = re.sub(empty, r'tooltip="\1"><img alt="\1"', context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Register what is said above."""
    sys.setrecursionlimit(10_000)
    app.connect("config-inited", write_reference)  # before documents are looked for
    app.connect("config-inited", copy_pages)
    app.connect("source-read", links_of_a_page)
    app.connect("autodoc-skip-member", skip_what_others_wrote)
    app.connect("autodoc-process-docstring", constants_as_commented, priority=1)
    app.connect("missing-reference", find_public)
    app.connect("doctree-read", run_programs)
    app.connect("html-page-context", describe_thumbnails)
    return {"parallel_read_safe": False}
