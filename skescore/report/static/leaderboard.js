// Table of all candidates, sortable by any column, and the measures of the chosen candidate.

const N_PRINTED_ROWS = 20;
// Rows shown until a user clicks "Show all".
const N_SHOWN_ROWS = 20;
const MAX_SHOWN_FOLDS = 12;

// The text is in a span, which stays visible when the table is scrolled sideways.
function caption(text) {
  return element("caption", {}, element("span", { text }));
}

function qualityNames(group) {
  const regression = group.task === "regression";
  return { performance: group.performance_name || (regression ? "R²" : "weighted F1"),
           loss: regression ? "mean absolute error" : "1 − accuracy" };
}

class Leaderboard {
  constructor(content, { onChoose, announce }) {
    Object.assign(this, { content, onChoose, announce });
    byId("show-all").addEventListener("click", () => {
      this.limit = Infinity;
      byId("show-all").hidden = true;
      this.fill();
    });
  }

  show(group, settings) {
    this.group = group;
    this.settings = settings;
    const names = qualityNames(group);
    this.columns = [
      { key: "rank", title: "Rank", value: (c, s) => s.rank, digits: 0 },
      { key: "extractor", title: "Extractor", text: true, value: (c) => c.extractor },
      { key: "score", title: "Score", value: (c, s) => s.score, digits: 4,
        greater: () => SCORES[this.settings.score].greater },
      { key: "spread", title: "±", value: (c, s) => s.spread, digits: 4 },
      { key: "performance", title: names.performance, greater: () => true },
      { key: "loss", title: names.loss },
      { key: "size", title: "Rules", digits: 1 },
      { key: "completeness_volume", title: HEADINGS.completeness_volume, greater: () => true },
      { key: "completeness_instances", title: HEADINGS.completeness_instances, greater: () => true },
      { key: "fidelity", title: "Fidelity", greater: () => true },
      { key: "seconds", title: "Seconds" },
      { key: "params", title: "Parameters", text: true, value: (c) => paramsText(c.params) },
    ].filter((column) => (column.key === "params"
      ? group.candidates.some((c) => paramsText(c.params))
      : column.value || group.candidates.some((c) => column.key in c.means)));
    this.sorted = { key: "rank", down: false };
    this.chosen = null;
    const head = byId("board").tHead.rows[0];
    head.replaceChildren(...this.columns.map((column) => {
      const button = element("button", {
        type: "button", class: "sort", text: column.title, onclick: () => this.sortBy(column),
      });
      column.button = button;
      column.head = element("th", { scope: "col", class: column.text ? "text" : "number" }, button);
      return column.head;
    }));
    this.rows = new Map();
    this.limit = N_SHOWN_ROWS;
    const count = group.candidates.length;
    byId("show-all").hidden = count <= N_SHOWN_ROWS;
    byId("show-all").textContent = `Show all ${count}`;
    byId("board-caption").textContent =
      `${plural(count, "candidate")}${this.content.kind === "bench" ? ` on ${group.name}` : ""}: means ` +
      `over ${this.content.kind === "bench" ? "seeds and folds" : `the folds, on ${scoredRows(group)}`}; ` +
      "± is the standard deviation between them" + (this.content.kind === "bench" ? ""
        : `; compared with ${group.reference === "black-box" ? "the predictions of the model" : this.content.target}`);
    byId("board-print").textContent = count > N_PRINTED_ROWS
      ? `Printed are the first ${N_PRINTED_ROWS} of ${count} candidates.` : "";
    this.makeFailures();
  }

  // Creates a row when it is first shown, since there may be many rows.
  rowOf(place) {
    if (this.rows.has(place)) return this.rows.get(place);
    const candidate = this.group.candidates[place];
    const row = element("tr", { "data-place": place });
    row.texts = {};
    for (const column of this.columns) {
      const isHead = column.key === "extractor";
      const cell = element(isHead ? "th" : "td", {
        class: `${column.text ? "text" : "number"} ${column.key}`, scope: isHead ? "row" : null,
        "data-label": isHead ? null : column.title,
      });
      row.append(cell);
      if (["rank", "score", "spread"].includes(column.key)) {
        row.texts[column.key] = cell.appendChild(document.createTextNode(""));
        if (column.key === "score") row.scoreCell = cell;
      } else if (isHead) {
        row.button = element("button", {
          type: "button", class: "choose", text: candidate.extractor,
          "aria-pressed": String(place === this.chosen),
          onclick: () => this.onChoose(place),
        });
        const marks = element("span", { class: "marks" });
        row.texts.marks = marks.appendChild(document.createTextNode(""));
        cell.append(row.button, marks);
      } else cell.textContent = this.cellText(column, candidate);
    }
    row.classList.toggle("chosen", place === this.chosen);
    row.classList.toggle("winner", place === this.group.winner);
    this.rows.set(place, row);
    return row;
  }

  cellText(column, candidate) {
    if (column.text) return column.value(candidate);
    return tableNumber(candidate.means[column.key], column.digits === undefined ? 3 : column.digits);
  }

  makeFailures() {
    const failures = this.group.failures, box = byId("failures");
    const total = failures.reduce((sum, failure) => sum + failure.count, 0);
    if (!total) { box.replaceChildren(); return; }
    const what = this.content.kind === "bench" ? "run" : "trial";
    box.replaceChildren(element("details", {},
      element("summary", { text: `${plural(total, what)} have no score and cannot be ranked` }),
      element("ul", {}, ...failures.map((failure) => element("li", {
        text: `${failure.extractor}: ${failure.count}, the first: ${failure.error || "unknown"}`,
      })))));
  }

  sortBy(column) {
    const first = column.greater ? column.greater() : false;
    this.sorted = this.sorted.key === column.key
      ? { key: column.key, down: !this.sorted.down } : { key: column.key, down: first };
    this.fill();
    this.announce(`Sorted by ${column.title}, ${this.sorted.down ? "largest" : "smallest"} first.`);
  }

  fill(ranking = this.ranking, settings = this.settings) {
    this.ranking = ranking;
    this.settings = settings;
    const { scored, order, choice } = ranking, label = scoreLabel(settings);
    for (const column of this.columns) {
      if (column.key === "score") column.button.textContent = label;
      const sorted = column.key === this.sorted.key;
      if (sorted) column.head.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      else column.head.removeAttribute("aria-sort");
    }
    const column = this.columns.find((c) => c.key === this.sorted.key);
    const value = (place) => (column.value
      ? column.value(this.group.candidates[place], scored[place])
      : this.group.candidates[place].means[column.key]);
    const places = order.slice();
    if (column.key !== "rank" || this.sorted.down) {
      const turn = this.sorted.down ? -1 : 1;
      places.sort((a, b) => {
        const first = value(a), second = value(b);
        if (column.text) return turn * first.localeCompare(second);
        if (Number.isNaN(first) || Number.isNaN(second)) {
          return Number.isNaN(first) - Number.isNaN(second);
        }
        return turn * (first - second);
      });
    }
    const shown = places.slice(0, this.limit).map((place) => {
      const row = this.rowOf(place), entry = scored[place];
      row.scoreCell.dataset.label = label;
      setText(row.texts.rank, String(entry.rank));
      setText(row.texts.score, tableNumber(entry.score, 4));
      setText(row.texts.spread, tableNumber(entry.spread, 4));
      const missing = this.group.candidates[place].missing;
      setText(row.texts.marks, [
        place === order[0] && !Number.isNaN(entry.score) && !entry.beyond ? "best score" : "",
        place === choice && place !== order[0] ? "chosen by these weights" : "",
        place === this.group.winner ? winnerName(this.group).replace("the ", "") : "",
        entry.beyond ? "beyond the limits" : "",
        missing ? `${missing} missing` : "",
      ].filter(Boolean).join(", "));
      row.classList.toggle("best", place === order[0]);
      return row;
    });
    const body = byId("board").tBodies[0];
    // Unchanged rows need no new layout.
    const isUnchanged = body.rows.length === shown.length && shown.every((row, k) => body.rows[k] === row);
    if (!isUnchanged) body.replaceChildren(...shown);
  }

  choose(place) {
    this.chosen = place;
    for (const [at, row] of this.rows) {
      const chosen = at === place;
      row.button.setAttribute("aria-pressed", String(chosen));
      row.classList.toggle("chosen", chosen);
    }
  }
}

// Distinguishes a candidate that the search chose from one that the user picked.
function winnerName(group, begins = false) {
  const name = group.picked ? "the selected candidate" : "the search's winner";
  return begins ? name.replace("the", "The") : name;
}

function setText(node, text) {
  if (node.data !== text) node.data = text;
}

// Shows the measures of the chosen candidate, as means and per fold.
function showCandidate(group, place, ranking, settings) {
  const candidate = group.candidates[place], entry = ranking.scored[place];
  const marks = [];
  if (place === group.winner) marks.push(winnerName(group));
  if (place === ranking.order[0]) marks.push("the best score with these weights");
  const params = Object.entries(candidate.params);
  const facts = [
    ["Extractor", candidate.extractor + (marks.length ? ` – ${marks.join(", ")}` : "")],
    ["Parameters", params.length ? paramsText(candidate.params) : "none searched"],
    [scoreLabel(settings), `${tableNumber(entry.score, 4)} ± ${tableNumber(entry.spread, 4)}, rank ` +
      `${entry.rank} of ${group.candidates.length}`],
    [scoredRows(group).replace(/^./, (letter) => letter.toUpperCase()), `${qualityNames(group).performance} ${tableNumber(candidate.means.performance)}, ` +
      `${qualityNames(group).loss} ${tableNumber(candidate.means.loss)}, ${tableNumber(candidate.means.size, 1)} rules, complete ` +
      `${tableNumber(candidate.means.completeness_volume)} by volume and ` +
      `${tableNumber(candidate.means.completeness_instances)} by rows`],
  ];
  if (candidate.missing) {
    facts.push(["Missing", `${candidate.missing} of ${candidate.missing + candidate.count} runs ` +
      "have no score; the means are over the others"]);
  }
  const list = element("dl", { class: "facts" }, ...facts.map(([name, text]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text }))));
  const parts = [list];
  if (candidate.count && candidate.count <= MAX_SHOWN_FOLDS) parts.push(foldTable(candidate, entry, settings, qualityNames(group)));
  byId("chosen-body").replaceChildren(...parts);
}

function foldTable(candidate, entry, settings, { performance, loss }) {
  const names = { performance, loss, size: "rules",
                  completeness_volume: HEADINGS.completeness_volume,
                  completeness_instances: HEADINGS.completeness_instances };
  const row = (title, values, digits) => element("tr", {},
    element("th", { scope: "row", class: "text", text: title }),
    ...values.map((value, k) => element("td", { class: "number", "data-label": `Fold ${k + 1}`,
                                                text: tableNumber(value, digits) })));
  return element("details", {},
    element("summary", { text: "Fold by fold" }),
    element("div", { class: "scroll", role: "region", tabindex: "0",
                     "aria-label": "Folds, can be scrolled" },
      element("table", { class: "stacked" },
        caption("Measurements on each fold"),
        element("thead", {}, element("tr", {},
          element("th", { scope: "col", class: "text", text: "Measure" }),
          ...entry.folds.map((_, k) => element("th", { scope: "col", class: "number",
                                                       text: String(k + 1) })))),
        element("tbody", {}, row(scoreLabel(settings), entry.folds, 4),
          ...Object.entries(names).map(([key, title]) => row(title, candidate.folds[key], 3))))));
}
