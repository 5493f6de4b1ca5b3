"""Sphinx configuration of the site, which `tox -e docs` builds.

The API reference is generated from the ``__all__`` of every public package, so it is always
current. The Python code in the guide is run during the build, and its output is shown.
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

# Only doctests in pages; `tox -e doctest` runs those in docstrings.
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

#: Names that other projects document; the build does not download their inventories.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|np|pandas|pd|scipy|sklearn|optuna|matplotlib|polars|joblib)\..*"),
    (r"py:attr", r"[a-z_]+"),  # attributes are documented in their class, without a link target
]


# The reference ------------------------------------------------------------------------------------


def public_packages() -> list[str]:
    """Return the package and its public modules, except `cli`, which has its own page."""
    names = ["skescore"]
    for module in pkgutil.walk_packages(skescore.__path__, "skescore."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts) and parts[1] != "cli":
            names.append(module.name)
    return names


def _documented_names() -> dict[str, list[str]]:
    """Return the names that each package documents, each under its shortest import path."""
    seen: set[Any] = set()
    names_of: dict[str, list[str]] = {}
    names = [name for name in public_packages() if name != "skescore"]
    for package in sorted(names, key=lambda name: (name.count("."), name)):
        module = importlib.import_module(package)
        names_of[package] = []
        for name in sorted(getattr(module, "__all__", ()), key=str.lower):
            value = getattr(module, name)
            key = (name, id(value))
            if key not in seen and not inspect.ismodule(value):
                seen.add(key)
                names_of[package].append(name)
    return {package: members for package, members in names_of.items() if members}


NAMES_OF_PACKAGES = _documented_names()
FULL_NAMES: dict[str, set[str]] = {}
for _package, _names in NAMES_OF_PACKAGES.items():
    for _name in _names:
        FULL_NAMES.setdefault(_name, set()).add(f"{_package}.{_name}")


def write_reference(app: Any, config: Any) -> None:
    """Write one page per public package and an index into ``docs/api``."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    frequent = ", ".join(f":py:obj:`{name}`" for name in skescore.__all__[1:])
    index = ["API reference", "=============", ""]
    index += ["All public names, grouped by the package from which they are imported.", ""]
    index += [f"``skescore`` itself exports the most frequently used names: {frequent}.", ""]
    index += [".. toctree::", "   :hidden:", ""]
    table = ["", ".. list-table::", "   :widths: 30 70", ""]
    for package, names in NAMES_OF_PACKAGES.items():
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


def skip_inherited_members(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Skip members that a class inherits from scikit-learn or from Python."""
    function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
    module = getattr(function, "__module__", None)
    return True if callable(function) and not (module or "").startswith("skescore") else None


def describe_constants(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Use the ``#:`` comment above the definition of a constant as its description."""
    if what != "data":
        return
    package, _, constant = name.rpartition(".")
    root = Path(skescore.__file__).parent
    for file in sorted(root.rglob("*.py")):
        comment = re.search(
            rf"((?:^#: ?.*\n)+){constant}\b", file.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        if comment:
            lines[:] = [line.removeprefix("#:").strip() for line in comment[1].splitlines()]
            return
    lines[:] = [f"Constant of {package}."]


def resolve_public_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve references to public names without a package or with another import path."""
    target = node.get("reftarget", "")
    for name in _candidates(target):
        entry = env.get_domain("py").objects.get(name)
        if entry is not None:
            return app.builder and nodes.reference(
                "",
                "",
                contnode,
                internal=True,
                refuri=app.builder.get_relative_uri(env.current_document.docname, entry.docname)
                + f"#{entry.node_id}",
            )
    return None


def _candidates(target: str) -> list[str]:
    """Return the full names to which a reference may point."""
    parts = target.split(".")
    names = []
    for i, part in enumerate(parts):
        rest = "".join(f".{later}" for later in parts[i + 1 :])
        names += [full_name + rest for full_name in sorted(FULL_NAMES.get(part, ()), key=len)]
    return names


# Files outside of docs ----------------------------------------------------------------------------

#: Files that are copied into the site, with the names of their pages.
COPIES = {
    ROOT / "CONTRIBUTING.md": "contributing",
    ROOT / "SECURITY.md": "security",
    ROOT / "CODE_OF_CONDUCT.md": "code_of_conduct",
    ROOT / "benchmarks" / "README.md": "benchmarks",
    ROOT / "benchmarks" / "paper" / "README.md": "papers",
    ROOT / "benchmarks" / "paper" / "tables.md": "papers_tables",
}


def site_links(text: str, origin: Path, folder: Path) -> str:
    """Replace links to files of the repository by links that work in the site."""

    def replace_link(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        file = (origin / target).resolve()
        if "://" in target or not file.exists():
            return match[0]
        if file.is_dir():
            return label
        if file in COPIES:
            return f"[{label}](/project/{COPIES[file]}.md{anchor})"
        path = os.path.relpath(file, folder)
        if file.suffix == ".md" and HERE not in file.parents:
            return f"[{label}](<path:{path}>)"
        return f"[{label}]({path}{anchor})"

    return re.sub(r"\[([^\]\[]*)\]\(([^)#\s]+)(#[^)\s]+)?\)", replace_link, text)


def copy_pages(app: Any, config: Any) -> None:
    """Copy the files of `COPIES` into ``docs/project``."""
    folder = HERE / "project"
    folder.mkdir(exist_ok=True)
    for file, name in COPIES.items():
        text = file.read_text(encoding="utf-8")
        if "\n## " not in text:
            text = text.replace("\n### ", "\n## ")
        _write(folder / f"{name}.md", site_links(text, file.parent, folder))


def replace_links(app: Any, docname: str, source: list[str]) -> None:
    """Replace the links of a page that was not copied."""
    page = HERE / f"{docname}.md"
    if page.exists() and not docname.startswith("project/"):
        source[0] = site_links(source[0], page.parent, page.parent)


# Code of the guide --------------------------------------------------------------------------------


def run_programs(app: Any, doctree: Any) -> None:
    """Run the Python code blocks of a page of the guide, and insert their output.

    The blocks run in order and share their names.
    """
    page = app.env.current_document.docname
    if not page.startswith(("guide/", "index")) or app.builder.name != "html":
        return
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") != "python":
            continue
        text = _run(block.astext(), page, names)
        if text:
            output = nodes.literal_block(text, text, language="text", classes=["output"])
            block.parent.insert(block.parent.index(block) + 1, output)


def _run(program: str, page: str, names: dict[str, Any]) -> str:
    import optuna

    verbosity, working_directory = optuna.logging.get_verbosity(), os.getcwd()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        os.chdir(folder)  # so that files of one program do not affect the next
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(program, page, "exec"), names)
        finally:
            os.chdir(working_directory)
            optuna.logging.set_verbosity(verbosity)
    return out.getvalue().rstrip()


def describe_thumbnails(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:
    """Use the descriptions of gallery examples as alternative texts of their thumbnails."""
    if page.startswith("gallery/"):
        empty = r'tooltip="([^"]*)"><img alt=""'
        context["body"] = re.sub(empty, r'tooltip="\1"><img alt="\1"', context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Register the event handlers."""
    sys.setrecursionlimit(10_000)
    app.connect("config-inited", write_reference)  # before Sphinx searches for documents
    app.connect("config-inited", copy_pages)
    app.connect("source-read", replace_links)
    app.connect("autodoc-skip-member", skip_inherited_members)
    app.connect("autodoc-process-docstring", describe_constants, priority=1)
    app.connect("missing-reference", resolve_public_name)
    app.connect("doctree-read", run_programs)
    app.connect("html-page-context", describe_thumbnails)
    return {"parallel_read_safe": False}
