"""Tables in formats of many countries: few rows are read like the table before."""

from __future__ import annotations

import codecs
import csv
import gzip
import io

import numpy as np
import pandas as pd

from skescore.datasets import Preparation, read_table

#: Signs before decimals and between thousands, and how dates are written.
COUNTRIES = {
    "us": (".", ",", "%m/%d/%Y"),
    "de": (",", ".", "%d.%m.%Y"),
    "ch": (".", "'", "%Y-%m-%d"),
    "fr": (",", " ", "%d/%m/%Y"),
    "plain": (".", "", "%Y-%m-%d"),
    "plain comma": (",", "", "%d.%m.%y"),
}
DECIMALS = {"count": 0, "price": 2, "ratio": 3}


def table(rng, n_rows):
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n_rows), unit="D")
    return pd.DataFrame(
        {
            "count": rng.integers(0, 200_000, n_rows),
            "price": rng.uniform(-10_000, 90_000, n_rows).round(2),
            "ratio": rng.uniform(0, 3, n_rows).round(3),
            "color": rng.choice(["red", "grün", "b, c"], n_rows),
            "on": days,
        }
    )


def written(rng, rows, country, folder, name):
    """Return the path of a text file with these rows in any dialect of a country."""
    decimal, thousands, dates = COUNTRIES[country]
    signs = str.maketrans({",": thousands, ".": decimal})
    cells = {c: [f"{v:,.{d}f}".translate(signs) for v in rows[c]] for c, d in DECIMALS.items()}
    cells |= {"color": rows["color"].tolist(), "on": rows["on"].dt.strftime(dates).tolist()}
    separator = str(rng.choice([",", ";", "\t", "|"] if decimal == "." else [";", "\t", "|"]))
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    end = str(rng.choice(["\n", "\r\n"]))
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
    writer.writerow(cells)
    for row in zip(*cells.values(), strict=True):
        writer.writerow(row)
        text.write(end if rng.random() < 0.05 else "")
    content = text.getvalue().encode(str(rng.choice(["utf-8", "cp1252", "utf-16"])))
    if not content.startswith(codecs.BOM_UTF16_LE) and content.isascii() and rng.random() < 0.3:
        content = codecs.BOM_UTF8 + content
    packed = rng.random() < 0.2
    path = folder / f"{name}.csv{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


def test_read_table_reads_few_rows_like_the_table_before(attack, tmp_path):
    def check(rng):
        country = str(rng.choice(list(COUNTRIES)))
        first = table(rng, 60)
        read = read_table(written(rng, first, country, tmp_path, "first"))
        restored = Preparation.from_dict(read.preparation.to_dict())
        later = table(rng, int(rng.choice([1, 2, 5])))
        result = read_table(
            written(rng, later, country, tmp_path, "later"), preparation=restored
        ).frame
        for rows, frame in ((first, read.frame), (later, result)):
            for name in DECIMALS:
                np.testing.assert_array_equal(frame[name], rows[name], err_msg=country)
            assert frame["color"].tolist() == rows["color"].tolist()
            assert frame["on: month"].tolist() == rows["on"].dt.month.tolist()

    attack(check, 5)
