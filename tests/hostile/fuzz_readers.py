"""Let atheris look for files that break a reader: ``python tests/hostile/fuzz_readers.py rules``.

Options after the name of the reader are libFuzzer's, such as ``-max_total_time=300``. The readers
and what they begin with are those of `test_files.py`, of which mutants are made without it.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
with atheris.instrument_imports(include=["skescore"]):
    from loaded_files import load_file

    files = load_file("hostile/test_files.py")


def main() -> None:
    kind = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if kind not in files.FILES:
        sys.exit(f"name one of {', '.join(files.FILES)}")
    original, read, name, _ = files.FILES[kind]
    folder = Path(tempfile.mkdtemp(prefix="skescore-fuzz-"))
    begin = folder / "corpus"
    begin.mkdir()
    content = original()
    if kind == "rules":  # a list of records, each with one file's rules
        content = files.json.dumps(files.json.loads(content)[0]["rules"]).encode()
    (begin / "0").write_bytes(content)
    warnings.simplefilter("ignore")

    def one(data: bytes) -> None:
        try:
            read(data, folder / name)
        except (ValueError, ImportError, FileNotFoundError) as error:
            if isinstance(error, UnicodeError):
                raise

    atheris.Setup([sys.argv[0], "-max_len=20000", *sys.argv[1:], str(begin)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
