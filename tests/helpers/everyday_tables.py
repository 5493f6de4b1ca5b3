"""Tables as people keep them: exports of statistics programs and of spreadsheets, made here.

Each has the peculiarities of a kind of file: row numbers without a name, points for missing values,
codes, units behind numbers, words among numbers, dates in several formats, titles and totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["EXCEL_TABLES", "TEXT_TABLES", "EverydayTable"]


@dataclass(frozen=True)
class EverydayTable:
    """What a table must be read as.

    Parameters
    ----------
    write : callable
        Writes the file into a folder and returns its path.
    target : str
        Name of the target.
    features : tuple of str
        Features that must be read.
    n_rows : int
        Number of rows of data.
    finding : str
        Part of a message on what was done; empty if there is nothing to report.
    suspicion : str
        Name of a check that must report something; empty if none may.
    """

    write: Callable[[Path], Path]
    target: str
    features: tuple[str, ...]
    n_rows: int
    finding: str = ""
    suspicion: str = ""


def _numbered(frame: pd.DataFrame, path: Path, **options: object) -> Path:
    """Write a frame as R does: with row numbers that have no name, and NA for missing values."""
    frame.index += 1
    frame.to_csv(path, na_rep="NA", quoting=2, index_label="", **options)
    return path


def _births(folder: Path) -> Path:
    random = np.random.default_rng(1)
    n_rows = 189
    smoke, race = random.integers(0, 2, n_rows), random.choice([1, 2, 3], n_rows, p=[0.5, 0.2, 0.3])
    grams = (
        (3100 - 250 * smoke - 150 * (race > 1) + random.normal(0, 650, n_rows)).round().astype(int)
    )
    frame = pd.DataFrame(
        {
            "low": (grams < 2500).astype(int),
            "age": random.integers(15, 42, n_rows),
            "lwt": random.integers(85, 230, n_rows),
            "race": race,
            "smoke": smoke,
            "bwt": grams,
        }
    )
    return _numbered(frame, folder / "births.csv")


def _cars(folder: Path) -> Path:
    random = np.random.default_rng(2)
    n_rows = 93
    power = random.integers(55, 300, n_rows)
    cylinders = random.choice(["3", "4", "6", "8"], n_rows, p=[0.05, 0.5, 0.35, 0.1]).astype(object)
    cylinders[57] = "rotary"
    room = random.integers(6, 23, n_rows).astype(float)
    room[random.random(n_rows) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "Type": random.choice(["Compact", "Midsize", "Van"], n_rows),
            "Cylinders": cylinders,
            "Horsepower": power,
            "Luggage.room": room,
            "Price": (power / 8 + random.normal(0, 4, n_rows)).round(1),
            "Make": [f"Maker {i % 30} Model {i}" for i in range(n_rows)],
        }
    )
    return _numbered(frame, folder / "cars.csv")


def _panel(folder: Path) -> Path:
    random = np.random.default_rng(3)
    codes = np.setdiff1d(np.arange(1, 57), [3, 7, 14, 43, 52])
    level = random.normal(2, 0.5, len(codes))
    frame = pd.DataFrame(
        {
            "state": np.repeat(codes, 7),
            "year": np.tile(np.arange(1982, 1989), len(codes)),
            "beertax": random.gamma(2, 0.25, 7 * len(codes)).round(4),
            "mlda": random.choice([18, 19, 20, 21], 7 * len(codes)),
            "mrall": (np.repeat(level, 7) + random.normal(0, 0.2, 7 * len(codes))).round(4),
        }
    )
    return _numbered(frame, folder / "panel.csv")


def _work(folder: Path) -> Path:
    random = np.random.default_rng(4)
    n_rows = 300
    works = random.random(n_rows) < 0.57
    frame = pd.DataFrame(
        {
            "work": np.where(works, "yes", "no"),
            "hoursw": np.where(works, random.integers(40, 4000, n_rows), 0),
            "child6": random.choice([0, 1, 2, 3], n_rows, p=[0.6, 0.25, 0.1, 0.05]),
            "agew": random.integers(30, 61, n_rows),
            "income": random.integers(1500, 96000, n_rows),
            "unemprate": random.choice([3.0, 5.0, 7.5, 9.5, 11.0], n_rows),
        }
    )
    return _numbered(frame, folder / "work.csv")


def _cohort(folder: Path) -> Path:
    random = np.random.default_rng(5)
    n_rows = 280
    diagnosis = random.integers(8300, 11500, n_rows)
    dies = random.random(n_rows) < 0.6
    death = np.where(dies, np.minimum(diagnosis + random.integers(1, 1500, n_rows), 11502), 11503)
    frame = pd.DataFrame(
        {
            "state": random.choice(["NSW", "Other", "QLD", "VIC"], n_rows),
            "sex": random.choice(["M", "F"], n_rows, p=[0.9, 0.1]),
            "diag": diagnosis,
            "death": death,
            "status": np.where(dies, "D", "A"),
            "T.categ": random.choice(["hs", "hsid", "id", "blood"], n_rows),
            "age": random.integers(15, 80, n_rows),
        }
    )
    return _numbered(frame, folder / "cohort.csv")


def _points(folder: Path) -> Path:
    random = np.random.default_rng(6)
    n_rows = 160
    dose, weight = random.integers(1, 5, n_rows), random.normal(71, 9, n_rows).round(1)
    frame = pd.DataFrame({"DOSE": dose, "WT": weight, "VISIT": random.integers(1, 4, n_rows)})
    frame["SYSBP"] = random.normal(130, 15, n_rows).round()
    frame["RESP"] = np.where(dose + random.normal(0, 1, n_rows) > 2.5, "CR", "PD")
    for name in ("WT", "SYSBP"):
        frame.loc[random.random(n_rows) < 0.12, name] = np.nan
    path = folder / "points.csv"
    frame.to_csv(path, na_rep=".", index=False)
    return path


def _laboratory(folder: Path) -> Path:
    random = np.random.default_rng(7)
    n_rows = 150
    sugar, salt = random.normal(5.6, 1.2, n_rows), random.normal(140, 4, n_rows)
    rows = ["Proben-Nr.;Kreatinin;Natrium;Blutzucker;Geschlecht;Befund"]
    for i in range(n_rows):
        creatinine = f"{random.gamma(8, 0.14):.1f} mg/dl".replace(".", ",")
        if i % 40 == 7:
            creatinine = "n.b."
        result = "auffällig" if sugar[i] + random.normal(0, 0.8) > 6 else "normal"
        rows.append(
            f"24-{i:04};{creatinine};{salt[i]:.0f} mmol/l;{sugar[i]:.1f};"
            f"{'wm'[i % 2]};{result}".replace(
                f"{sugar[i]:.1f}", f"{sugar[i]:.1f}".replace(".", ",")
            )
        )
    path = folder / "laboratory.csv"
    path.write_text("\r\n".join(rows) + "\r\n", encoding="cp1252")
    return path


def _visits(folder: Path) -> Path:
    random = np.random.default_rng(8)
    people = pd.DataFrame(
        {
            "patient": random.permutation(np.arange(4000, 4080)),
            "age": random.integers(20, 80, 80),
            "outcome": random.choice(["better", "same", "worse"], 80),
        }
    )
    visits = people.loc[np.repeat(np.arange(80), 3)].sample(frac=1, random_state=0)
    days = pd.Timestamp("2022-01-03") + pd.to_timedelta(random.integers(0, 700, 240), unit="D")
    written = [f"{day:%Y-%m-%d}" if i % 3 else f"{day:%d.%m.%Y}" for i, day in enumerate(days)]
    visits.insert(1, "seen on", written)
    visits["pain"] = random.integers(0, 11, 240)
    path = folder / "visits.csv"
    visits.to_csv(path, index=False)
    return path


def _members(folder: Path) -> Path:
    random = np.random.default_rng(9)
    n_rows = 220
    towns = random.choice(["01067", "04109", "09111", "80331", "20095"], n_rows)
    fee = random.choice([9.99, 19.99, 29.99], n_rows)
    months = random.integers(1, 60, n_rows)
    leaves = (fee > 15) & (months < 25) ^ (random.random(n_rows) < 0.1)
    frame = pd.DataFrame(
        {
            "Member No": random.permutation(n_rows) + 70_001,
            "ZIP": towns,
            "Fee": [f"$ {value:.2f}" for value in fee],
            "Months": months,
            "Newsletter": random.choice(["TRUE", "FALSE"], n_rows),
            "Cancelled": np.where(leaves, "Yes", "No"),
        }
    )
    path = folder / "members.tsv"
    frame.to_csv(path, sep="\t", index=False)
    return path


def _survey(folder: Path) -> Path:
    random = np.random.default_rng(10)
    n_rows = 250
    trust = random.integers(1, 6, n_rows)
    frame = pd.DataFrame(
        {
            "resp_id": np.arange(1, n_rows + 1),
            "trust": np.where(random.random(n_rows) < 0.06, 99, trust),
            "age": random.choice(["18-29", "30-44", "45-64", "65+"], n_rows),
            "income": random.choice(["low", "middle", "high", "Don't know"], n_rows),
            "hours": np.where(random.random(n_rows) < 0.05, 999, random.integers(0, 40, n_rows)),
            "vote": np.where(trust + random.normal(0, 1, n_rows) > 3, "yes", "no"),
        }
    )
    path = folder / "survey.txt"
    frame.to_csv(path, sep="|", index=False)
    return path


def _branches(folder: Path) -> Path:
    random = np.random.default_rng(11)
    lines = ['"Branch","Staff","Sales","Margin","Renewed"']
    grand_staff = grand_sales = 0
    for region in ("North", "South", "East"):
        staff, sales = random.integers(3, 30, 24), random.integers(20_000, 900_000, 24)
        for i in range(24):
            renewed = "yes" if sales[i] + random.normal(0, 150_000) > 400_000 else "no"
            margin = random.uniform(-3, 20)
            lines.append(f'"{region} {i + 1}",{staff[i]},"{sales[i]:,}",{margin:.1f}%,{renewed}')
        lines.append(f'"Total {region}",{staff.sum()},"{sales.sum():,}",,')
        grand_staff, grand_sales = grand_staff + staff.sum(), grand_sales + sales.sum()
    lines.append(f'"Grand total",{grand_staff},"{grand_sales:,}",,')
    path = folder / "branches.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _months(folder: Path) -> Path:
    random = np.random.default_rng(12)
    months = pd.date_range("2012-01-01", periods=120, freq="MS")
    season = 8 * np.sin(np.arange(120) / 12 * 2 * np.pi)
    frame = pd.DataFrame(
        {
            "month": months.strftime("%b %Y"),
            "price": random.normal(60, 6, 120).round(2),
            "rain": random.gamma(2, 30, 120).round(1),
        }
    )
    frame["demand"] = (400 + 5 * season - frame["price"] + random.normal(0, 3, 120)).round(1)
    path = folder / "months.csv"
    frame.to_csv(path, index=False)
    return path


def _places(folder: Path) -> Path:
    random = np.random.default_rng(13)
    codes = np.setdiff1d(np.arange(1, 57), [3, 7, 14, 43, 52])
    rates = random.permutation(np.linspace(0.03, 0.97, len(codes)))
    rows = np.repeat(np.arange(len(codes)), 12)
    frame = pd.DataFrame(
        {
            "st": codes[rows],
            "hours": random.normal(38, 6, len(rows)).round(1),
            "tenure": random.integers(0, 30, len(rows)),
            "union": np.where(random.random(len(rows)) < rates[rows], "member", "none"),
        }
    ).sample(frac=1, random_state=0, ignore_index=True)
    return _numbered(frame, folder / "places.csv")


def _boats(folder: Path) -> Path:
    random = np.random.default_rng(14)
    minutes = np.sort(random.integers(0, 80, 18))
    launch = pd.Timestamp("1912-04-15 00:45:00") + pd.to_timedelta(minutes, unit="min")
    women = random.integers(2, 65, 18)
    frame = pd.DataFrame(
        {
            "launch": launch.strftime("%Y-%m-%d %H:%M:%S"),
            "side": random.choice(["Port", "Starboard"], 18),
            "boat": [*map(str, random.permutation(np.arange(1, 17))), "C", "D"],
            "crew": random.integers(2, 16, 18),
            "women": women,
            "full": np.where(women > 40, "yes", "no"),
        }
    )
    return _numbered(frame, folder / "boats.csv")


#: Text files by their kind.
TEXT_TABLES = {
    "births": EverydayTable(
        _births, "low", ("age", "lwt", "race", "smoke", "bwt"), 189, "row numbers", "leakage"
    ),
    "cars": EverydayTable(
        _cars,
        "Price",
        ("Type", "Cylinders", "Horsepower", "Luggage.room"),
        93,
        "'rotary' in column 'Cylinders' is read as missing",
    ),
    "panel": EverydayTable(
        _panel, "mrall", ("state", "year", "beertax", "mlda"), 357, "read as categories"
    ),
    "work": EverydayTable(
        _work,
        "work",
        ("hoursw", "child6", "agew", "income", "unemprate"),
        300,
        "row numbers",
        "leakage",
    ),
    "cohort": EverydayTable(
        _cohort,
        "status",
        ("state", "sex", "diag", "death", "T.categ", "age"),
        280,
        "row numbers",
        "leakage",
    ),
    "points": EverydayTable(
        _points, "RESP", ("DOSE", "WT", "VISIT", "SYSBP"), 160, "'.' in column 'WT'"
    ),
    "laboratory": EverydayTable(
        _laboratory,
        "Befund",
        ("Kreatinin", "Natrium", "Blutzucker", "Geschlecht"),
        150,
        "numbers with the unit 'mg/dl'",
    ),
    "visits": EverydayTable(
        _visits,
        "outcome",
        ("seen on: year", "seen on: month", "seen on: weekday", "age", "pain"),
        240,
        "'seen on' holds dates",
        "repeated_groups",
    ),
    "members": EverydayTable(
        _members, "Cancelled", ("ZIP", "Fee", "Months", "Newsletter"), 220, "'Member No'"
    ),
    "survey": EverydayTable(
        _survey,
        "vote",
        ("trust", "age", "income", "hours"),
        250,
        "999 in column 'hours'",
    ),
    "branches": EverydayTable(
        _branches, "Renewed", ("Staff", "Sales", "Margin"), 72, "'Total North'"
    ),
    "months": EverydayTable(
        _months,
        "demand",
        ("month: year", "month: month", "price", "rain"),
        120,
        "'month' holds dates",
        "shuffled_time",
    ),
    "places": EverydayTable(
        _places, "union", ("st", "hours", "tenure"), 612, "row numbers", "integer_codes"
    ),
    "boats": EverydayTable(
        _boats,
        "full",
        ("launch: hour", "side", "crew", "women"),
        18,
        "'boat' (identifiers)",
        "few_rows",
    ),
}


def _sheet(path: Path, rows: list[list[object]], merged: tuple[str, ...] = ()) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([None if cell == "" else cell for cell in row])
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)
    return path


def _people(n_rows: int, seed: int) -> list[list[object]]:
    """Return rows of age, height, weight, group and outcome."""
    random = np.random.default_rng(seed)
    rows: list[list[object]] = []
    for _ in range(n_rows):
        age, height = int(random.integers(18, 90)), round(random.normal(171, 9), 1)
        weight = round(random.normal(74, 11), 1)
        outcome = "ill" if age / 50 + weight / 80 + random.normal(0, 0.5) > 2.1 else "well"
        rows.append([age, height, weight, str(random.choice(["A", "B"])), outcome])
    return rows


def _titled_sheet(folder: Path) -> Path:
    rows: list[list[object]] = [
        ["Health survey, wave 3", "", "", "", ""],
        ["Exported 31.01.2024 by the registry", "", "", "", ""],
        ["", "", "", "", ""],
        ["Age", "Height", "Weight", "Group", "Outcome"],
        *_people(90, 1),
        ["", "", "", "", ""],
        ["Source: interviews of the registry", "", "", "", ""],
    ]
    return _sheet(folder / "titled.xlsx", rows, ("A1:E1", "A2:E2"))


def _merged_sheet(folder: Path) -> Path:
    rows: list[list[object]] = [
        ["Person", "", "", "Study", ""],
        ["Age", "Height", "Weight", "Group", "Outcome"],
        *_people(90, 2),
    ]
    return _sheet(folder / "merged.xlsx", rows, ("A1:C1", "D1:E1"))


def _units_sheet(folder: Path) -> Path:
    people = _people(90, 3)
    mean = [sum(row[j] for row in people) / len(people) for j in range(3)]
    rows: list[list[object]] = [
        ["Age", "Height", "Weight", "Group", "Outcome"],
        ["[years]", "[cm]", "[kg]", "", ""],
        *people,
        ["", "", "", "", ""],
        [*(f"Ø {value:.1f}" for value in mean), "", ""],
    ]
    return _sheet(folder / "units.xlsx", rows)


def _subtotals_sheet(folder: Path) -> Path:
    rows: list[list[object]] = [
        ["Sales report 2023", "", "", "", "", ""],
        ["Region", "Shop", "Visitors", "Sales", "Returns", "Bonus"],
    ]
    all_rows: list[list[float]] = []
    random = np.random.default_rng(4)
    for region in ("North", "South", "West"):
        block = []
        for i in range(20):
            visitors, returns = int(random.integers(100, 900)), int(random.integers(0, 40))
            sales = round(visitors * float(random.uniform(8, 12)), 2)
            bonus = "yes" if sales > 5000 and returns < 25 else "no"
            rows.append([region, f"Shop {region[0]}{i}", visitors, sales, returns, bonus])
            block.append([visitors, sales, returns])
        rows.append(
            [f"{region} Total", "", *(round(sum(c), 2) for c in zip(*block, strict=True)), ""]
        )
        all_rows += block
    rows.append(["Grand Total", "", *(round(sum(c), 2) for c in zip(*all_rows, strict=True)), ""])
    return _sheet(folder / "subtotals.xlsx", rows, ("A1:F1",))


def _wards_sheet(folder: Path) -> Path:
    rows: list[list[object]] = [
        ["Ward report", "", "", "", ""],
        ["", "Patient", "", "Stay", ""],
        ["No.", "Age", "Temp.", "Days", "Outcome"],
        ["", "years", "°C", "d", ""],
    ]
    random = np.random.default_rng(5)
    for ward in ("Ward 1", "Ward 2", "Ward 3"):
        rows.append([ward, "", "", "", ""])
        for i in range(25):
            days, age = int(random.integers(1, 30)), int(random.integers(18, 95))
            outcome = "home" if days + age / 10 + random.normal(0, 3) < 20 else "transfer"
            temperature = round(random.normal(37.2, 0.6), 1)
            rows.append([i + 1, age, temperature, days, outcome])
    rows.append(["* preliminary figures", "", "", "", ""])
    return _sheet(folder / "wards.xlsx", rows, ("A1:E1", "B2:C2", "D2:E2"))


_PERSON = ("Age", "Height", "Weight", "Group")
#: Workbooks by their kind.
EXCEL_TABLES = {
    "titled": EverydayTable(
        _titled_sheet, "Outcome", _PERSON, 90, "above the header left out: 'Health survey, wave 3'"
    ),
    "merged": EverydayTable(
        _merged_sheet,
        "Study Outcome",
        ("Person Age", "Person Height", "Person Weight", "Study Group"),
        90,
        "joined to one header",
    ),
    "units": EverydayTable(_units_sheet, "Outcome", _PERSON, 90, "holds units"),
    "subtotals": EverydayTable(
        _subtotals_sheet,
        "Bonus",
        ("Region", "Visitors", "Sales", "Returns"),
        60,
        "2 rows among the data left out (sums or means of other rows): 'North Total'",
    ),
    "wards": EverydayTable(
        _wards_sheet,
        "Stay Outcome",
        ("No.", "Patient Age", "Patient Temp.", "Stay Days"),
        75,
        "(headings of the rows below them): 'Ward 1', 'Ward 2', 'Ward 3'",
    ),
}
