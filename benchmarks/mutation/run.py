"""Run mutation tests: change one place of the code at a time and check that a test fails.

    python benchmarks/mutation/run.py metrics scorers rules [--sample N] [--seed N] [--again]

First, the tests of the selected targets run once. This records which tests execute which line and
how long each test takes. Each mutant is then tried in a fork of a process that has imported the
package and collected all tests. The fork replaces the code of the changed functions and runs the
tests that execute a changed line, fast ones first, until one fails. The tests of one mutant take
about `--seconds` in total. A mutant survives if none of them fails. `--again` tries survivors with
four times as many seconds.

Mutants change comparisons (`<` and `<=`, `==` and `!=`, `in`, `is`), arithmetic, `and` and `or`,
signs and `not`, numbers (plus one), True and False, conditions, axes, sides, pairs of functions
such as min and max, `+=` and `-=`, calls whose result is unused (removed), and return values
(None). Messages, type hints and docstrings are not changed. Results are stored in `.mutation/`, and
a run resumes from them. `explained.csv` lists survivors that change no observable behavior, with
the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import gc
import hashlib
import importlib
import json
import os
import signal
import sys
import time
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[2]
STATE_FOLDER = ROOT / ".mutation"
EXPLAINED = Path(__file__).with_name("explained.csv")
#: Source files to mutate, and the tests to run. The tests of survival need scikit-survival.
TARGETS = {
    "metrics": (("metrics",), ("metrics", "scorers", "sources/test_count_decisions.py")),
    "checker": (
        ("certificates/_check.py",),
        ("certificates", "rules/test_condition_conformance.py"),
    ),
    "survival": (
        (
            "metrics/_survival.py",
            "rules/_survival.py",
            "scorers/_survival.py",
            "survival/_estimator.py",
        ),
        ("metrics/test_survival.py", "rules/test_survival.py", "survival"),
    ),
    "scorers": (("scorers",), ("scorers", "metrics", "tuning/test_search_objective.py")),
    "rules": (
        (
            "rules/_conditions.py",
            "rules/_domain.py",
            "rules/_json.py",
            "rules/_boxes.py",
            "rules/_matching.py",
            "rules/_row_table.py",
            "rules/_prediction.py",
            "rules/_rule.py",
            "rules/_ruleset.py",
            "rules/_text.py",
            "rules/_volumes.py",
            "rules/simplification",
        ),
        ("rules", "metrics", "scorers", "selection"),
    ),
}

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("zeros", "ones"),
    ("argmin", "argmax"),
    ("logical_and", "logical_or"),
    ("nanmin", "nanmax"),
    ("left", "right"),
    ("isnan", "isfinite"),
    ("sum", "prod"),
    ("mean", "sum"),
    ("log1p", "expm1"),
    ("log", "exp"),
    ("nansum", "nanmean"),
    ("cumsum", "cumprod"),
    ("fmin", "fmax"),
    ("startswith", "endswith"),
)
_SWAPS = {b: a for a, b in _PAIRS} | dict(_PAIRS)


@dataclass(frozen=True)
class Mutant:
    """One change of one node."""

    path: str
    scope: str
    original: str
    replacement: str
    #: Index among identical changes of the same function.
    occurrence: int
    #: Index of the changed node in the order of `ast.walk`, and of the change among its changes.
    node: int
    change: int
    #: A test must execute one of these lines to detect the mutant.
    lines: tuple[int, ...]

    @property
    def key(self) -> str:
        suffix = f" #{self.occurrence}" if self.occurrence else ""
        return f"{self.path}::{self.scope}: {self.original} -> {self.replacement}{suffix}"


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the replacements of a node; None deletes the statement."""
    mutated: Any = copy.copy(node)
    match node:
        case ast.Compare(ops=[op], left=left) if type(op) in _COMPARISONS:
            mutated.ops = [_COMPARISONS[type(op)]()]
            yield mutated
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                mutated = copy.copy(node)
                mutated.ops = [*ops[:i], _COMPARISONS[type(op)](), *ops[i + 1 :]]
                yield mutated
        case ast.BinOp(op=op, left=left) if type(op) in _ARITHMETIC:
            if not (isinstance(left, ast.Constant | ast.JoinedStr) and isinstance(op, ast.Mod)):
                mutated.op = _ARITHMETIC[type(op)]()
                yield mutated
        case ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            mutated.op = _ARITHMETIC[type(op)]()
            yield mutated
        case ast.BoolOp(op=op):
            mutated.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield mutated
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            mutated.value = not value
            yield mutated
        case ast.Constant(value=int() | float() as value):
            is_axis = isinstance(parent, ast.keyword) and parent.arg == "axis"
            mutated.value = 0 if is_axis and value == 1 else value + 1
            yield mutated
        case ast.Constant(value=str(value)) if value in ("left", "right"):
            mutated.value = _SWAPS[value]
            yield mutated
        case ast.Name(id=name) if name in _SWAPS and name not in ("left", "right"):
            if isinstance(parent, ast.Call) and parent.func is node:
                mutated.id = _SWAPS[name]
                yield mutated
        case ast.Attribute(attr=name) if name in _SWAPS:
            if isinstance(parent, ast.Call) and parent.func is node:
                mutated.attr = _SWAPS[name]
                yield mutated
        case ast.Expr(value=ast.Call()):
            yield None
        case ast.Return(value=value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value in (None, False)
        ):
            mutated.value = ast.Constant(None)
            yield mutated
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
    if (
        isinstance(parent, ast.If | ast.IfExp | ast.While)
        and parent.test is node
        and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp)
    ):
        yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]


def _is_excluded(node: ast.AST) -> bool:
    """Return whether a node is excluded from mutation, for example a message."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        return name.endswith(("Error", "warn", "_undefined", "cast"))
    if isinstance(node, ast.keyword) and node.arg == "strict":  # an assertion of zip
        return True
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _mutable_nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, tuple[ast.AST, ...]]]:
    """Yield each mutable node with its parent and its ancestors."""

    def descend(node: ast.AST, ancestors: tuple[ast.AST, ...]) -> Iterator[Any]:
        if _is_excluded(node):
            return
        if ancestors:
            yield node, ancestors[-1], ancestors
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from descend(child, (*ancestors, node))

    yield from descend(tree, ())


def _shorten(node: ast.AST | None) -> str:
    """Return the source of a node in one line of limited length."""
    text = "pass" if node is None else " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else f"{text[:80]} ... {text[-36:]}"


def list_mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node_index = {id(node): i for i, node in enumerate(ast.walk(tree))}
    mutants, counts = [], Counter[tuple[str, str, str]]()
    functions = (ast.FunctionDef, ast.Lambda)
    for node, parent, ancestors in _mutable_nodes(tree):
        names = [
            n.name for n in (*ancestors, node) if isinstance(n, ast.FunctionDef | ast.ClassDef)
        ]
        for change, mutated in enumerate(_changes(node, parent)):
            mutated_node: Any = node
            statement: Any = [n for n in (*ancestors, node) if isinstance(n, ast.stmt)][-1]
            lines = {statement.lineno, *range(mutated_node.lineno, mutated_node.end_lineno + 1)}
            if any(isinstance(n, ast.arguments) for n in ancestors):
                function: Any = [n for n in ancestors if isinstance(n, functions)][-1]
                lines = set(range(function.lineno, function.end_lineno + 1))
            elif not any(isinstance(n, functions) for n in ancestors):
                continue  # executed once, at import
            description = ".".join(names) or "module", _shorten(node), _shorten(mutated)
            name, node_change = path.relative_to(ROOT).as_posix(), (node_index[id(node)], change)
            mutants.append(
                Mutant(name, *description, counts[description], *node_change, tuple(sorted(lines)))
            )
            counts[description] += 1
    return mutants


def _apply_mutant(source: str, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of a file with one mutant applied."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    node = nodes[mutant.node]
    parent = parents[id(node)]
    mutated = list(_changes(node, parent))[mutant.change]
    mutated = ast.copy_location(ast.Pass() if mutated is None else mutated, node)
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, mutated)
        elif isinstance(value, list):
            setattr(parent, name, [mutated if child is node else child for child in value])
    return ast.fix_missing_locations(tree)


def _function_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code objects of all functions of a module, including nested ones."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _function_codes(constant)


class LiveFunctions:
    """Function objects of the package in this process, indexed by the location of their code."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str, int], list[types.FunctionType]] = defaultdict(list)
        gc.unfreeze()
        for candidate in gc.get_objects():
            if (
                isinstance(candidate, types.FunctionType)
                and "skescore" in candidate.__code__.co_filename
            ):
                self._functions[self._location(candidate.__code__)].append(candidate)

    @staticmethod
    def _location(code: types.CodeType) -> tuple[str, str, int]:
        return os.path.realpath(code.co_filename), code.co_qualname, code.co_firstlineno

    def exchange(self, mutant: Mutant) -> bool:
        """Replace the code that a mutant changes; return whether any function has changed."""
        path = str(ROOT / mutant.path)
        source = Path(path).read_text(encoding="utf-8")
        tree = _apply_mutant(source, mutant)
        original_codes = _function_codes(compile(source, path, "exec"))
        mutated_codes = _function_codes(compile(tree, path, "exec"))
        has_changed = False
        for original, replacement in zip(original_codes, mutated_codes, strict=True):
            if original != replacement:
                for function in self._functions[self._location(original)]:
                    if function.__code__ == original:
                        function.__code__ = replacement
                        has_changed = True
        module = sys.modules[".".join(Path(mutant.path).with_suffix("").parts)]
        return self._exchange_defaults(tree, mutant, path, vars(module)) or has_changed

    def _exchange_defaults(self, tree: ast.Module, mutant: Mutant, path: str, scope: Any) -> bool:
        """Replace the changed default values of parameters; return whether any has changed."""
        has_changed = False
        function_name = mutant.scope.rpartition(".")[2]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == function_name:
                first_line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                for location, functions in self._functions.items():
                    if location[0] != path or location[2] != first_line:
                        continue
                    stub = copy.copy(node)
                    stub.decorator_list, stub.body = [], [ast.copy_location(ast.Pass(), node)]
                    namespace: dict[str, Any] = {}
                    exec(compile(ast.Module([stub], []), path, "exec"), dict(scope), namespace)
                    replacement = namespace[node.name]
                    for function in functions:
                        if function.__name__ == node.name:
                            function.__defaults__ = replacement.__defaults__
                            function.__kwdefaults__ = replacement.__kwdefaults__
                            has_changed = True
        return has_changed


class Recorder:
    """Pytest plugin that records which tests execute which line, and the duration of each test."""

    def __init__(self, data_path: Path, times_path: Path) -> None:
        self._times_path, self._seconds = times_path, Counter[str]()
        self.coverage = coverage.Coverage(
            str(data_path), branch=True, source=[str(ROOT / "skescore")]
        )
        self.coverage.erase()
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        self._times_path.write_text(json.dumps(self._seconds))


class Trial:
    """Pytest plugin that tries mutants in forks of the process that has collected all tests."""

    def __init__(
        self, mutants: list[Mutant], data: Path, times: Path, results: Path, seconds: float
    ) -> None:
        self._mutants, self._results, self._seconds = mutants, results, seconds
        self._times: dict[str, float] = json.loads(times.read_text())
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._files = {os.path.realpath(ROOT / f): f for f in self._data.measured_files()}
        self._contexts: dict[str, dict[int, list[str]]] = {}
        self._failed = False

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # an earlier import makes pytest warn

        default_settings = settings.default
        settings.register_profile(
            "mutation",
            default_settings,
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def select_tests(self, mutant: Mutant, items: dict[str, pytest.Item]) -> list[pytest.Item]:
        """Return the tests that can detect a mutant, with fast and closely related tests first."""
        path = str(ROOT / mutant.path)
        if path not in self._contexts:
            file = self._files.get(path)
            self._contexts[path] = self._data.contexts_by_lineno(file) if file else {}
        contexts_by_line = self._contexts[path]
        names = {
            c.partition("|")[0] for line in mutant.lines for c in contexts_by_line.get(line, ())
        }
        names |= items.keys() - self._times.keys()  # tests without a recorded time
        stem = f"test{Path(path).stem}"

        def rank(name: str) -> float:
            return self._times.get(name, 0.1) + (0 if stem in name else 0.3)

        return [items[n] for n in sorted(names & items.keys(), key=lambda n: (rank(n), n))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in sorted({m.path for m in self._mutants}):
            importlib.import_module(".".join(Path(path).with_suffix("").parts))
        items = {item.nodeid: item for item in session.items}
        live_functions = LiveFunctions()
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        for i, mutant in enumerate(self._mutants):
            selected, total = [], 0.0
            for item in self.select_tests(mutant, items):
                seconds = self._times.get(item.nodeid, 0.1)
                if selected and total + seconds > self._seconds:
                    continue
                total += seconds
                selected.append(item)
            start = time.monotonic()
            verdict, killer = (
                self._try_mutant(mutant, selected, total, live_functions)
                if selected
                else ("unseen", "")
            )
            record = {
                "mutant": mutant.key,
                "line": mutant.lines[0],
                "verdict": verdict,
                "by": killer,
                "tests": len(selected),
                "seconds": round(time.monotonic() - start, 2),
            }
            with self._results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            if i % 25 == 0:
                print(f"{i}/{len(self._mutants)}", file=sys.__stderr__, flush=True)
        return True

    def _try_mutant(
        self,
        mutant: Mutant,
        selected: list[pytest.Item],
        total: float,
        live_functions: LiveFunctions,
    ) -> tuple[str, str]:
        """Return the verdict on a mutant, and the first test that fails, if any."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            exit_code = 4
            try:
                os.close(read_end)
                null_device = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null_device, 1)
                os.dup2(null_device, 2)
                # Limit the CPU time, and the wall time in case a test sleeps.
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, 10 + 5 * total)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(int(120 + 20 * total))
                exit_code = self._run_selected(mutant, selected, live_functions, write_end)
            finally:
                os._exit(exit_code)
        os.close(write_end)
        with os.fdopen(read_end) as file:
            killer = file.read()
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            is_timeout = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
            return ("killed", "too slow" if is_timeout else f"signal {os.WTERMSIG(status)}")
        return {0: "survived", 1: "killed", 3: "not exchanged"}.get(
            os.WEXITSTATUS(status), "not tried"
        ), killer

    def _run_selected(
        self,
        mutant: Mutant,
        selected: list[pytest.Item],
        live_functions: LiveFunctions,
        write_end: int,
    ) -> int:
        """Run tests until one fails; return the exit code and write the name of the failed test."""
        try:
            if not live_functions.exchange(mutant):
                return 3
        except Exception:
            os.write(write_end, b"the import")
            return 1  # code that runs at import fails
        manager = selected[0].config.pluginmanager
        manager.unregister(manager.getplugin("terminalreporter"))
        for item, next_item in zip(selected, [*selected[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
            if self._failed:
                os.write(write_end, item.nodeid.encode())
                return 1
        return 0


def _run_pytest(tests: list[str], plugin: Any) -> None:
    os.chdir(ROOT)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    pytest.main([*arguments, "-m", "not slow", *tests], plugins=[plugin])


def _read_explanations() -> dict[str, str]:
    """Return the reason of each explained survivor by the key of its mutant."""
    if not EXPLAINED.exists():
        return {}
    with EXPLAINED.open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row["why"] for row in csv.DictReader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="+", choices=TARGETS)
    parser.add_argument("--sample", type=int, help="number of mutants to try (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only try mutants whose key contains this text")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds of tests per mutant")
    parser.add_argument("--again", action="store_true", help="try survivors again with more tests")
    parser.add_argument("--list", action="store_true", help="print stored results only")
    options = parser.parse_args()
    STATE_FOLDER.mkdir(exist_ok=True)
    for target in options.targets:
        source_names, test_paths = TARGETS[target]
        test_paths = [f"tests/{name}" for name in test_paths]
        files = [
            file
            for name in source_names
            for path in [ROOT / "skescore" / name]
            for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        ]
        mutants = [m for file in files for m in list_mutants(file)]
        mutants.sort(key=lambda m: hashlib.sha256(f"{options.seed} {m.key}".encode()).digest())
        selected = [m for m in mutants if options.only in m.key][: options.sample]
        data_path, times_path = (
            STATE_FOLDER / f"{target}.coverage",
            STATE_FOLDER / f"{target}.times.json",
        )
        results_path = STATE_FOLDER / f"{target}.jsonl"
        records: dict[str, dict[str, Any]] = {}
        if results_path.exists():
            for line in results_path.read_text().splitlines():
                record = json.loads(line)
                records[record["mutant"]] = record
        explanations = _read_explanations()
        remaining = [m for m in selected if m.key not in records]
        if options.again:
            remaining = [
                m
                for m in selected
                if records.get(m.key, {}).get("verdict") not in (None, "killed")
                and m.key not in explanations
            ]
        if remaining and not options.list:
            if (pid := os.fork()) == 0:  # a fresh process for each pass
                if not data_path.exists():
                    _run_pytest(test_paths, Recorder(data_path, times_path))
                os._exit(0)
            os.waitpid(pid, 0)
            if (pid := os.fork()) == 0:
                seconds = options.seconds * (4 if options.again else 1)
                _run_pytest(
                    test_paths, Trial(remaining, data_path, times_path, results_path, seconds)
                )
                os._exit(0)
            os.waitpid(pid, 0)
            for line in results_path.read_text().splitlines():
                record = json.loads(line)
                records[record["mutant"]] = record
        tried = [records[m.key] for m in selected if m.key in records]
        counts = Counter(r["verdict"] for r in tried)
        survivors = [r for r in tried if r["verdict"] in ("survived", "unseen")]
        n_explained = sum(r["mutant"] in explanations for r in survivors)
        print(
            f"{target}: {len(mutants)} mutants, {len(tried)} tried, {counts['killed']} killed, "
            f"{len(survivors)} survived, {n_explained} of them explained, "
            f"{len(tried) - counts['killed'] - len(survivors)} not exchanged"
        )
        for record in sorted(survivors, key=lambda r: (r["mutant"].partition(":")[0], r["line"])):
            if record["mutant"] not in explanations:
                print(f"  {record['line']:5} {record['verdict']:9} {record['mutant']}")


if __name__ == "__main__":
    main()
