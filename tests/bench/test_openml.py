"""Data sets of OpenML from the cache of scikit-learn, without network."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from skescore.datasets import DatasetError, load_dataset

ARFF = """@RELATION weather
@ATTRIBUTE windy {no,yes}
@ATTRIBUTE temperature REAL
@ATTRIBUTE humidity REAL
@ATTRIBUTE play {no,yes}
@DATA
no,20.5,70,yes
yes,18.0,80,no
no,25.0,60,yes
yes,?,65,no
no,15.5,90,no
"""


def feature(index, name, kind, **more):
    return {
        "index": str(index),
        "name": name,
        "data_type": kind,
        "is_target": "false",
        "is_ignore": "false",
        "is_row_identifier": "false",
        "number_of_missing_values": "0",
        **more,
    }


@pytest.fixture
def weather(tmp_path, monkeypatch):
    folder = tmp_path / "openml" / "openml.org"

    def keep(path, text):
        file = folder / (path + ".gz")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()))

    about = {
        "id": "7",
        "name": "weather",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "made up",
        "file_id": "99",
        "default_target_attribute": "play",
        "url": "https://www.openml.org/data/v1/download/99/weather.arff",
        "md5_checksum": hashlib.md5(ARFF.encode()).hexdigest(),
    }
    features = [
        feature(0, "windy", "nominal", nominal_value=["no", "yes"]),
        feature(1, "temperature", "numeric", number_of_missing_values="1"),
        feature(2, "humidity", "numeric"),
        feature(3, "play", "nominal", nominal_value=["no", "yes"], is_target="true"),
    ]
    keep("api/v1/json/data/7", json.dumps({"data_set_description": about}))
    keep("api/v1/json/data/features/7", json.dumps({"data_features": {"feature": features}}))
    keep("api/v1/json/data/qualities/7", json.dumps({"data_qualities": {"quality": []}}))
    keep("data/v1/download/99/weather.arff", ARFF)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # no server listens there


def test_openml_sets_target_and_categories(weather):
    data = load_dataset("openml:7", missing="drop")
    assert (data.name, data.source, data.task) == ("weather", "openml:7", "classification")
    assert data.y.name == "play"
    assert data.y.tolist() == ["yes", "no", "yes", "no"]
    assert data.categories == ("windy",)
    assert data.X["temperature"].tolist() == [20.5, 18.0, 25.0, 15.5]
    assert data.n_rows_dropped == 1
    assert data.checksum == load_dataset("openml:7", missing="drop", drop="windy").checksum


def test_openml_accepts_target_and_drop(weather):
    data = load_dataset("openml:7", target="humidity", drop=["windy", "temperature"])
    assert (data.task, data.y.tolist()) == ("classification", [70, 80, 60, 65, 90])
    assert data.X.columns.tolist() == ["play"]
    assert data.categories == ("play",)
    with pytest.raises(DatasetError, match=r"missing"):
        load_dataset("openml:7", missing="error")
    with pytest.raises(DatasetError, match="openml:7 cannot be used: there is no column 'rain'"):
        load_dataset("openml:7", target="rain")


@pytest.mark.slow
def test_openml_without_network_states_the_cause(weather):
    with pytest.raises(DatasetError, match=r"openml:8 cannot be fetched from OpenML: .*refused"):
        load_dataset("openml:8")


@pytest.mark.parametrize("name", ["openml:", "openml:iris", "openml:0", "openml:-3"])
def test_openml_accepts_ids_only(name):
    with pytest.raises(DatasetError, match=f"'{name}' is not a data set: .* such as openml:61"):
        load_dataset(name)
