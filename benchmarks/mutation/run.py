"""Change the code in one place at a time and see whether a test notices.

    python benchmarks/mutation/run.py metrics scorers rules [--sample N] [--seed N] [--again]

First the tests of the named rooms run once, to learn which of them pass which line, and how long
each takes. Then one mutant after the other is tried in a process that is forked where all is
imported and collected: the code of the functions it changes is exchanged, and the tests that pass
the changed line run, quick ones first, until one fails. A mutant that no test of `--seconds`
notices survives; `--again` tries the survivors with four times as many.

Mutants are comparisons (`<` and `<=`, `==` and `!=`, `in`, `is`), arithmetic, `and` and `or`, signs
and `not`, numbers plus one, True and False, conditions, axes, sides, pairs of functions like min
and max, `+=` and `-=`, calls whose result nobody takes (left out), and what is returned (None).
Messages, type hints and docstrings are left as they are. Results stand in `.mutation/` and are
taken up again. Survivors that change nothing anybody can see stand, with the reason, in
`explained.csv`.
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
#: What is changed, and the tests that shall notice. Those of survival need scikit-survival.
ROOMS = {
    "metrics": (("metrics",), ("metrics", "scorers", "sources/test_count_decisions.py")),
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
_OTHER = {b: a for a, b in _PAIRS} | dict(_PAIRS)


@dataclass(frozen=True)
class Mutant:
    """One change in one place."""

    path: str
    where: str
    was: str
    becomes: str
    #: Which of the same changes in the same function, from the first on.
    which: int
    #: The changed node, in the order of `ast.walk`, and the change among those of the node.
    node: int
    change: int
    #: Lines of which a test must pass one to be able to notice.
    lines: tuple[int, ...]

    @property
    def key(self) -> str:
        suffix = f" #{self.which}" if self.which else ""
        return f"{self.path}::{self.where}: {self.was} -> {self.becomes}{suffix}"


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the replacements of a node; None deletes a statement."""
    new: Any = copy.copy(node)
    match node:
        case ast.Compare(ops=[op], left=left) if type(op) in _COMPARISONS:
            new.ops = [_COMPARISONS[type(op)]()]
            yield new
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                new = copy.copy(node)
                new.ops = [*ops[:i], _COMPARISONS[type(op)](), *ops[i + 1 :]]
                yield new
        case ast.BinOp(op=op, left=left) if type(op) in _ARITHMETIC:
            if not (isinstance(left, ast.Constant | ast.JoinedStr) and isinstance(op, ast.Mod)):
                new.op = _ARITHMETIC[type(op)]()
                yield new
        case ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            new.op = _ARITHMETIC[type(op)]()
            yield new
        case ast.BoolOp(op=op):
            new.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield new
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            new.value = not value
            yield new
        case ast.Constant(value=int() | float() as value):
            axis = isinstance(parent, ast.keyword) and parent.arg == "axis"
            new.value = 0 if axis and value == 1 else value + 1
            yield new
        case ast.Constant(value=str(value)) if value in ("left", "right"):
            new.value = _OTHER[value]
            yield new
        case ast.Name(id=name) if name in _OTHER and name not in ("left", "right"):
            if isinstance(parent, ast.Call) and parent.func is node:
                new.id = _OTHER[name]
                yield new
        case ast.Attribute(attr=name) if name in _OTHER:
            if isinstance(parent, ast.Call) and parent.func is node:
                new.attr = _OTHER[name]
                yield new
        case ast.Expr(value=ast.Call()):
            yield None
        case ast.Return(value=value) if value is not None and not (
            isinstance(value, ast.Constant) and value.value in (None, False)
        ):
            new.value = ast.Constant(None)
            yield new
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


def _left_alone(node: ast.AST) -> bool:
    """Return whether a node is excluded from mutation, such as messages."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        return name.endswith(("Error", "warn", "_undefined", "cast"))
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: an assertion
        return True
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _named(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, tuple[ast.AST, ...]]]:
    """Yield the nodes that can be mutated, with their ancestors."""

    def below(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[Any]:
        if _left_alone(node):
            return
        if above:
            yield node, above[-1], above
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from below(child, (*above, node))

    yield from below(tree, ())


def _short(node: ast.AST | None) -> str:
    text = "pass" if node is None else " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else f"{text[:80]} ... {text[-36:]}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = {id(node): i for i, node in enumerate(ast.walk(tree))}
    mutants, counts = [], Counter[tuple[str, str, str]]()
    functions = (ast.FunctionDef, ast.Lambda)
    for node, parent, above in _named(tree):
        names = [n.name for n in (*above, node) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for change, new in enumerate(_changes(node, parent)):
            line: Any = node
            statement: Any = [n for n in (*above, node) if isinstance(n, ast.stmt)][-1]
            lines = {statement.lineno, *range(line.lineno, line.end_lineno + 1)}
            if any(isinstance(n, ast.arguments) for n in above):
                body: Any = [n for n in above if isinstance(n, functions)][-1]
                lines = set(range(body.lineno, body.end_lineno + 1))
            elif not any(isinstance(n, functions) for n in above):
                continue  # what is done once, at import
            description = ".".join(names) or "module", _short(node), _short(new)
            name, node_change = path.relative_to(ROOT).as_posix(), (number[id(node)], change)
            mutants.append(
                Mutant(name, *description, counts[description], *node_change, tuple(sorted(lines)))
            )
            counts[description] += 1
    return mutants


def _mutated(source: str, mutant: Mutant) -> ast.Module:
    """The tree of a file with the change."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    node = nodes[mutant.node]
    parent = parents[id(node)]
    new = list(_changes(node, parent))[mutant.change]
    new = ast.copy_location(ast.Pass() if new is None else new, node)
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, new)
        elif isinstance(value, list):
            setattr(parent, name, [new if child is node else child for child in value])
    return ast.fix_missing_locations(tree)


def _functions_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield all code objects of functions in a module, including nested ones."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield part
            yield from _functions_of(part)


class Living:
    """The functions of the package that live in this process, by their code."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, str, int], list[types.FunctionType]] = defaultdict(list)
        gc.unfreeze()
        for candidate in gc.get_objects():
            if (
                isinstance(candidate, types.FunctionType)
                and "skescore" in candidate.__code__.co_filename
            ):
                self._functions[self._place(candidate.__code__)].append(candidate)

    @staticmethod
    def _place(code: types.CodeType) -> tuple[str, str, int]:
        return os.path.realpath(code.co_filename), code.co_qualname, code.co_firstlineno

    def exchange(self, mutant: Mutant) -> bool:
        """Put a mutant in the place of what it changes; whether there was anything to change."""
        path = str(ROOT / mutant.path)
        source = Path(path).read_text(encoding="utf-8")
        tree = _mutated(source, mutant)
        before = _functions_of(compile(source, path, "exec"))
        after = _functions_of(compile(tree, path, "exec"))
        changed = False
        for old, new in zip(before, after, strict=True):
            if old != new:
                for function in self._functions[self._place(old)]:
                    if function.__code__ == old:
                        function.__code__ = new
                        changed = True
        module = sys.modules[".".join(Path(mutant.path).with_suffix("").parts)]
        return self._defaults(tree, mutant, path, vars(module)) or changed

    def _defaults(self, tree: ast.Module, mutant: Mutant, path: str, scope: Any) -> bool:
        """The same, for what a parameter is unless it is given."""
        changed = False
        name = mutant.where.rpartition(".")[2]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                for location, functions in self._functions.items():
                    if location[0] != path or location[2] != first:
                        continue
                    bare = copy.copy(node)
                    bare.decorator_list, bare.body = [], [ast.copy_location(ast.Pass(), node)]
                    namespace: dict[str, Any] = {}
                    exec(compile(ast.Module([bare], []), path, "exec"), dict(scope), namespace)
                    new = namespace[node.name]
                    for function in functions:
                        if function.__name__ == node.name:
                            function.__defaults__ = new.__defaults__
                            function.__kwdefaults__ = new.__kwdefaults__
                            changed = True
        return changed


class Recorder:
    """Learns which test passes which line, and how long it takes."""

    def __init__(self, data: Path, times: Path) -> None:
        self._times, self._seconds = times, Counter[str]()
        self.coverage = coverage.Coverage(str(data), branch=True, source=[str(ROOT / "skescore")])
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
        self._times.write_text(json.dumps(self._seconds))


class Trial:
    """Tries mutants in forks of a process that has collected all tests."""

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
        from hypothesis import Phase, settings  # pytest warns of plugins that are imported before

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

    def tests_of(self, mutant: Mutant, items: dict[str, pytest.Item]) -> list[pytest.Item]:
        """The tests that can notice, quick ones and those of the same name first."""
        path = str(ROOT / mutant.path)
        if path not in self._contexts:
            file = self._files.get(path)
            self._contexts[path] = self._data.contexts_by_lineno(file) if file else {}
        by_line = self._contexts[path]
        names = {c.partition("|")[0] for at in mutant.lines for c in by_line.get(at, ())}
        names |= items.keys() - self._times.keys()  # new ones
        stem = f"test{Path(path).stem}"

        def rank(name: str) -> float:
            return self._times.get(name, 0.1) + (0 if stem in name else 0.3)

        return [items[n] for n in sorted(names & items.keys(), key=lambda n: (rank(n), n))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in sorted({m.path for m in self._mutants}):
            importlib.import_module(".".join(Path(path).with_suffix("").parts))
        items = {item.nodeid: item for item in session.items}
        living = Living()
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        gc.collect()
        gc.freeze()
        for i, mutant in enumerate(self._mutants):
            chosen, total = [], 0.0
            for item in self.tests_of(mutant, items):
                took = self._times.get(item.nodeid, 0.1)
                if chosen and total + took > self._seconds:
                    continue
                total += took
                chosen.append(item)
            start = time.monotonic()
            verdict, by = self._judged(mutant, chosen, total, living) if chosen else ("unseen", "")
            record = {
                "mutant": mutant.key,
                "line": mutant.lines[0],
                "verdict": verdict,
                "by": by,
                "tests": len(chosen),
                "seconds": round(time.monotonic() - start, 2),
            }
            with self._results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            if i % 25 == 0:
                print(f"{i}/{len(self._mutants)}", file=sys.__stderr__, flush=True)
        return True

    def _judged(
        self, mutant: Mutant, chosen: list[pytest.Item], total: float, living: Living
    ) -> tuple[str, str]:
        """Return the first test that fails, if any."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 4
            try:
                os.close(reading)
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                # Processor seconds, and those of the clock should it sleep.
                signal.signal(signal.SIGPROF, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, 10 + 5 * total)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(int(120 + 20 * total))
                code = self._noticed(mutant, chosen, living, writing)
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as file:
            by = file.read()
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            hung = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
            return ("killed", "too slow" if hung else f"signal {os.WTERMSIG(status)}")
        return {0: "survived", 1: "killed", 3: "not exchanged"}.get(
            os.WEXITSTATUS(status), "not tried"
        ), by

    def _noticed(
        self, mutant: Mutant, chosen: list[pytest.Item], living: Living, writing: int
    ) -> int:
        try:
            if not living.exchange(mutant):
                return 3
        except Exception:
            os.write(writing, b"the import")
            return 1  # what is executed at import fails
        manager = chosen[0].config.pluginmanager
        manager.unregister(manager.getplugin("terminalreporter"))
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                os.write(writing, item.nodeid.encode())
                return 1
        return 0


def _pytest(tests: list[str], plugin: Any) -> None:
    os.chdir(ROOT)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    pytest.main([*arguments, "-m", "not slow", *tests], plugins=[plugin])


def _explained() -> dict[str, str]:
    if not EXPLAINED.exists():
        return {}
    with EXPLAINED.open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row["why"] for row in csv.DictReader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, help="mutants to try, all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only mutants whose name holds this")
    parser.add_argument("--seconds", type=float, default=4.0, help="of tests for each mutant")
    parser.add_argument("--again", action="store_true", help="try survivors with more tests")
    parser.add_argument("--list", action="store_true", help="only tell what is known")
    options = parser.parse_args()
    STATE_FOLDER.mkdir(exist_ok=True)
    for room in options.rooms:
        changed, tests = ROOMS[room]
        tests = [f"tests/{name}" for name in tests]
        files = [
            file
            for name in changed
            for path in [ROOT / "skescore" / name]
            for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        ]
        everything = [m for file in files for m in mutants_of(file)]
        everything.sort(key=lambda m: hashlib.sha256(f"{options.seed} {m.key}".encode()).digest())
        chosen = [m for m in everything if options.only in m.key][: options.sample]
        data, times = STATE_FOLDER / f"{room}.coverage", STATE_FOLDER / f"{room}.times.json"
        results = STATE_FOLDER / f"{room}.jsonl"
        records: dict[str, dict[str, Any]] = {}
        if results.exists():
            for line in results.read_text().splitlines():
                record = json.loads(line)
                records[record["mutant"]] = record
        explained = _explained()
        left = [m for m in chosen if m.key not in records]
        if options.again:
            left = [
                m
                for m in chosen
                if records.get(m.key, {}).get("verdict") not in (None, "killed")
                and m.key not in explained
            ]
        if left and not options.list:
            if (pid := os.fork()) == 0:  # a fresh process for every pass
                if not data.exists():
                    _pytest(tests, Recorder(data, times))
                os._exit(0)
            os.waitpid(pid, 0)
            if (pid := os.fork()) == 0:
                seconds = options.seconds * (4 if options.again else 1)
                _pytest(tests, Trial(left, data, times, results, seconds))
                os._exit(0)
            os.waitpid(pid, 0)
            for line in results.read_text().splitlines():
                record = json.loads(line)
                records[record["mutant"]] = record
        tried = [records[m.key] for m in chosen if m.key in records]
        counts = Counter(r["verdict"] for r in tried)
        alive = [r for r in tried if r["verdict"] in ("survived", "unseen")]
        n_explained = sum(r["mutant"] in explained for r in alive)
        print(
            f"{room}: {len(everything)} mutants, {len(tried)} tried, {counts['killed']} killed, "
            f"{len(alive)} survived, {n_explained} of them explained, "
            f"{len(tried) - counts['killed'] - len(alive)} not exchanged"
        )
        for record in sorted(alive, key=lambda r: (r["mutant"].partition(":")[0], r["line"])):
            if record["mutant"] not in explained:
                print(f"  {record['line']:5} {record['verdict']:9} {record['mutant']}")


if __name__ == "__main__":
    main()
