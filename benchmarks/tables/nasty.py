"""Ten generated tables with typical defects: decimal commas, old encodings, identifiers."""

from __future__ import annotations

import csv
import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd


class TableRequest(NamedTuple):
    """File of a table, its target, and identifiers, which no rule may use."""

    path: Path
    target: str
    identifiers: tuple[str, ...] = ()


def _format_german_amount(value: float) -> str:
    """Return an amount in German notation."""
    return f"{value:,.2f} €".translate(str.maketrans(",.", ".,"))


def _make_customers(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    income = np.exp(rng.normal(8, 0.6, n)).round(2)
    age = rng.integers(18, 80, n)
    plan = rng.choice(["basic", "plus", "pro"], n)
    calls = rng.poisson(2, n)
    is_leaving = (calls > 3) | ((plan == "basic") & (age < 30))
    return pd.DataFrame(
        {"income": income, "age": age, "plan": plan, "calls": calls, "leaves": is_leaving}
    )


def _write_german(path: Path) -> TableRequest:
    table, rng = _make_customers(600, 0), np.random.default_rng(1)
    days = pd.Timestamp("2023-01-02") + pd.to_timedelta(rng.integers(0, 700, 600), unit="D")
    frame = pd.DataFrame(
        {
            "Kundennummer": rng.permutation(600) + 10_000,
            "Einkommen": [_format_german_amount(v) for v in table["income"]],
            "Alter": table["age"],
            "Tarif": table["plan"].map({"basic": "Grün", "plus": "Größer", "pro": "Profi"}),
            "Quote": [f"{v:.1f}".replace(".", ",") for v in rng.uniform(0, 9, 600)],
            "Beginn": days.strftime("%d.%m.%Y"),
            "Kündigung": np.where(table["leaves"], "ja", "nein"),
        }
    )
    frame.loc[::17, "Quote"] = "k.A."
    frame.to_csv(path, sep=";", index=False, encoding="utf-8-sig")
    return TableRequest(path, "Kündigung", ("Kundennummer",))


def _write_old_encoding(path: Path) -> TableRequest:
    table = _make_customers(500, 2)
    frame = table.assign(plan=table["plan"].map({"basic": "Café", "plus": "Straße", "pro": "Öl"}))
    frame.columns = ["Einkünfte", "Alter", "Wohnstätte", "Anrufe", "geht"]
    frame.to_csv(path, index=False, encoding="cp1252")
    return TableRequest(path, "geht")


def _write_duplicate_headers(path: Path) -> TableRequest:
    table = _make_customers(500, 3)
    rows = table[["income", "income", "age", "calls", "plan", "leaves"]].to_numpy(object)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", "value", "value", "age", "value", "empty", "plan", "leaves"])
        for i, row in enumerate(rows):
            writer.writerow([i, row[0], row[1], row[2], row[3], "", row[4], row[5]])
    return TableRequest(path, "leaves", ("Unnamed",))


def _write_dollars(path: Path) -> TableRequest:
    rng = np.random.default_rng(4)
    area, rooms = rng.uniform(30, 300, 700), rng.integers(1, 9, 700)
    rate = rng.uniform(0, 12, 700)
    price = area * 2500 + rooms * 10_000 - rate * 8000 + rng.normal(0, 9000, 700)
    frame = pd.DataFrame(
        {
            "area": [f"{v:,.1f}" for v in area * 10.764],
            "rooms": rooms,
            "vacancy": [f"{v:.1f}%" for v in rate],
            "tax": [f"(${v:,.2f})" if v < 0 else f"${v:,.2f}" for v in rng.normal(2e3, 1500, 700)],
            "price": [f"${v:,.2f}" for v in price],
        }
    )
    frame.loc[::23, "tax"] = "N/A"
    frame.to_csv(path, index=False)
    return TableRequest(path, "price")


def _write_forty_classes(path: Path) -> TableRequest:
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 40, 2000)
    frame = pd.DataFrame(
        {
            "weight": kind % 8 + rng.normal(0, 0.15, 2000),
            "length": kind // 8 + rng.normal(0, 0.15, 2000),
            "color": rng.choice(["red", "green", "blue"], 2000),
            "product": [f"P{k:02}" for k in kind],
        }
    )
    frame.to_csv(path, index=False)
    return TableRequest(path, "product")


def _write_rare(path: Path) -> TableRequest:
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.normal(size=(5000, 8)), columns=[f"v{i}" for i in range(8)])
    risk = X["v0"] + X["v1"] + rng.normal(0, 0.3, 5000)
    X["fraud"] = np.where(risk > np.sort(risk)[-70], "yes", "no")
    X["amount"] = rng.lognormal(4, 1, 5000).round(2)
    X.to_csv(path, index=False)
    return TableRequest(path, "fraud")


def _write_wide(path: Path) -> TableRequest:
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(500, 200)).round(3), columns=[f"gene{i}" for i in range(200)])
    X["group"] = np.where(X["gene3"] + X["gene77"] > 0.5, "case", "control")
    X = X.mask(rng.random(X.shape) < 0.01)
    X.to_csv(path, index=False)
    return TableRequest(path, "group")


def _write_long(path: Path) -> TableRequest:
    rng = np.random.default_rng(8)
    n = 100_000
    X = pd.DataFrame(rng.normal(size=(n, 14)).round(3), columns=[f"x{i}" for i in range(14)])
    for i, size in enumerate((3, 8, 60)):
        X[f"c{i}"] = rng.choice([f"k{j}" for j in range(size)], n)
    days = pd.to_timedelta(rng.integers(0, 1500, n), unit="D")
    X["when"] = (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d")
    X["order_id"] = rng.permutation(n)
    X["y"] = np.where((X["x0"] > 0.3) & (X["c0"] != "k1"), "up", "down")
    X.to_csv(path, index=False)
    return TableRequest(path, "y", ("order_id",))


def _write_dates(path: Path) -> TableRequest:
    rng = np.random.default_rng(9)
    n = 900
    pickup_times = pd.Timestamp("2022-03-01 06:00") + pd.to_timedelta(
        rng.integers(0, 500 * 24, n), "h"
    )
    paid_dates = pickup_times.normalize() + pd.to_timedelta(rng.integers(1, 40, n), unit="D")
    is_late = (pickup_times.day_of_week > 4) | (pickup_times.month == 12)
    frame = pd.DataFrame(
        {
            "pickup": pickup_times.strftime("%d/%m/%Y %H:%M"),
            "paid": paid_dates.strftime("%b %d, %Y"),
            "km": rng.gamma(2, 3, n).round(1),
            "late": np.where(is_late ^ (rng.random(n) < 0.05), "yes", "no"),
        }
    )
    frame.loc[::31, "paid"] = "unknown"
    path.write_bytes(frame.to_csv(index=False, sep="\t").encode("utf-16"))
    return TableRequest(path, "late")


def _write_identifiers(path: Path) -> TableRequest:
    table, rng = _make_customers(800, 10), np.random.default_rng(11)
    keys = rng.integers(0, 2**32, (800, 4))
    frame = table.assign(
        uid=[str(uuid.UUID(int=int.from_bytes(row.tobytes()[:16], "big"))) for row in keys],
        CustomerID=rng.permutation(800) * 7 + 1000,
        name=[f"Customer {i}" for i in rng.permutation(800)],
        town=rng.choice([f"town {i}" for i in range(150)], 800),
        score=np.where(rng.random(800) < 0.1, -999, rng.integers(0, 100, 800)),
        age=np.where(rng.random(800) < 0.1, "unknown", table["age"].astype(str)),
    )
    frame[[*frame.columns[5:], *frame.columns[:5]]].to_csv(path, index=False)
    return TableRequest(path, "leaves", ("uid", "CustomerID", "name"))


#: Functions that write the tables, by file name.
GENERATED = {
    "german.csv": _write_german,
    "old_encoding.csv": _write_old_encoding,
    "duplicate_headers.csv": _write_duplicate_headers,
    "dollars.csv": _write_dollars,
    "forty_classes.csv": _write_forty_classes,
    "rare.csv": _write_rare,
    "wide.csv": _write_wide,
    "long.csv": _write_long,
    "dates.tsv": _write_dates,
    "identifiers.csv": _write_identifiers,
}
