"""Completion script in a real shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from skescore.cli import COMMANDS, main
from skescore.datasets import BUILT_IN

pytest.importorskip("shtab")
bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

_ASK = """
. ./script
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
COMP_POINT=${#COMP_LINE}
function=$(complete -p skescore | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
$function skescore "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["completion", "bash"]) == 0
    (folder / "script").write_text(out.getvalue())
    (folder / "wine_list.csv").touch()
    (folder / "windows").mkdir()
    return folder


@pytest.fixture(scope="module")
def complete(folder):
    def complete(*words):
        run = subprocess.run(
            ["bash", "--norc", "-c", _ASK, "bash", "skescore", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert run.stderr == ""
        return set(run.stdout.split())

    return complete


@bash
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tu"], {"tune"}),
        (["re"], {"report", "reproduce"}),
        (["tune", "--sc"], {"--scoring"}),
        (["tune", "iris", "--sto"], {"--storage"}),
        (["tune", "iris", "--format", ""], {"text", "json", "markdown"}),
        (["tune", "iris", "--black-box", "random"], {"random-forest"}),
        (["tune", "iris", "--scoring", "ic"], {"ice"}),
        (["tune", "iris", "--extractors", "psyke:grid"], {"psyke:gridex", "psyke:gridrex"}),
        (["tune", "win"], {"wine", "wine_list.csv", "windows"}),
        (["tune", "iris", "--output", "win"], {"windows"}),
        (["import", "wine_"], {"wine_list.csv"}),
        (["report", "win"], {"windows"}),
        (["reproduce", ""], {"fire", "ice", "brex"}),
        (["reproduce", "fire", "--psy"], {"--psyke"}),
        (["reproduce", "brex", "--psy"], set()),
        (["completion", "z"], {"zsh"}),
        (["nonsense", "--t"], set()),
    ],
)
def test_bash_completes_words(words, expected, complete):
    assert complete(*words) == expected


@bash
def test_bash_completes_all_commands(complete):
    assert complete("") == set(COMMANDS)


@bash
def test_bash_completes_all_data_sets(complete):
    assert set(BUILT_IN) <= complete("tune", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("skescore re", {"report", "reproduce"}),
        ("skescore tune win", {"wine", "wine_list.csv", "windows/"}),
        ("skescore tune iris --format ", {"text", "json", "markdown"}),
        ("skescore reproduce fire --psy", {"--psyke"}),
    ],
)
def test_fish_completes_words(line, expected, folder, capsys):
    assert main(["completion", "fish"]) == 0
    (folder / "script.fish").write_text(capsys.readouterr().out)
    ask = f"source script.fish; complete -C '{line}'"
    run = subprocess.run(
        ["fish", "--no-config", "-c", ask], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert {answer.partition("\t")[0] for answer in run.stdout.splitlines()} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_data_sets_and_files(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script.count("_skescore_data") > 3  # made once, and used by several commands
    assert " ".join(BUILT_IN) in script


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_describes_commands_in_a_line(shell, capsys):
    """Menus of these shells show the summary next to the name."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out.replace("'\"'\"'", "'").replace("\\'", "'")
    for _, summary in COMMANDS.values():
        assert summary in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_supports_every_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "skescore" in out
    for name in COMMANDS:
        assert name in out
    for option in ("black-box", "psyke", "splits"):
        assert option in out
    assert out.endswith("\n")


def test_completion_keeps_parsers(capsys):
    main(["completion", "bash"])
    with pytest.raises(SystemExit):
        main(["tune", "iris", "--scoring", "nonsense"])
    assert "there is no score 'nonsense'" in capsys.readouterr().err


def test_missing_shtab_error_states_command(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert 'pip install "shtab>=1.13"' in capsys.readouterr().err
