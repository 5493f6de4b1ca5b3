"""Draw the picture of the README from a search on the wine data.

    python docs/pictures.py [FOLDER]

Needs Matplotlib: `pip install ".[plots]"`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore import ExtractorSearchCV
from skescore.plots import pareto_plot, winner_map


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("images"))
    folder.mkdir(exist_ok=True)
    X, y = load_wine(return_X_y=True, as_frame=True)
    search = ExtractorSearchCV(
        RandomForestClassifier(random_state=0), n_trials=60, random_state=0
    ).fit(X, y)
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    pareto_plot(search, ax=left)
    winner_map(search, "ice", ax=right)
    figure.savefig(folder / "trade_off.png", dpi=200)
    print(f"wrote {folder / 'trade_off.png'}; {len(search.pareto_front_)} on the front")
    return 0


if __name__ == "__main__":
    sys.exit(main())
