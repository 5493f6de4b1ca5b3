// The weights, the plot and the leaderboard: whatever changes, all three follow.

const SHARES = { volume: "of the volume", instances: "of the rows" };
const PRINTED = 20;
// Rows of the leaderboard until all are asked for.
const SHOWN = 100;

class TradeOff {
  constructor(content, onChoose) {
    this.content = content;
    this.onChoose = onChoose;
    this.settings = { ...content.start };
    this.announce = afterwards(400, (text) => { byId("announcer").textContent = text; });
    this.queued = false;
    this.watch();
  }

  show(group) {
    this.group = group;
    const names = content_names(group);
    this.columns = [
      { key: "rank", title: "Rank", value: (c, s) => s.rank, digits: 0 },
      { key: "extractor", title: "Extractor", text: true, value: (c) => c.extractor },
      { key: "score", title: "Score", value: (c, s) => s.score, digits: 4,
        greater: () => SCORES[this.settings.score].greater },
      { key: "spread", title: "±", value: (c, s) => s.spread, digits: 4 },
      { key: "performance", title: names.performance, greater: () => true },
      { key: "loss", title: names.loss },
      { key: "size", title: "Rules" , digits: 1 },
      { key: "completeness_volume", title: "c volume", greater: () => true },
      { key: "completeness_instances", title: "c rows", greater: () => true },
      { key: "fidelity", title: "Fidelity", greater: () => true },
      { key: "seconds", title: "Seconds" },
      { key: "params", title: "Parameters", text: true, value: (c) => paramsText(c.params) },
    ].filter((column) => (column.key === "params"
      ? group.candidates.some((c) => paramsText(c.params))
      : column.value || group.candidates.some((c) => column.key in c.means)));
    this.sorted = { key: "rank", down: false };
    this.chosen = null;
    this.makeTable();
    this.makePlot();
    this.update();
    const first = group.winner !== null ? group.winner : this.ranking.order[0];
    this.choose(first === undefined ? null : first);
  }

  // --- the weights -------------------------------------------------------------------------

  watch() {
    for (const input of document.querySelectorAll("#weights input[type=radio]")) {
      input.addEventListener("change", () => {
        this.settings[input.name] = input.value;
        this.soon();
      });
    }
    for (const name of weightNames()) {
      const slider = byId(name), number = byId(name + "-number");
      slider.addEventListener("input", () => {
        // Three digits, so that the number beside the slider is the weight, not a rounding of it.
        this.settings[name] = Number((10 ** Number(slider.value)).toPrecision(3));
        number.value = this.settings[name];
        this.soon();
      });
      number.addEventListener("input", () => {
        const value = Number(number.value);
        const sound = number.value !== "" && value > 0 && Number.isFinite(value);
        number.setAttribute("aria-invalid", String(!sound));
        if (!sound) return;
        this.settings[name] = value;
        slider.value = Math.log10(value);
        this.soon();
      });
    }
    byId("weights").addEventListener("submit", (event) => event.preventDefault());
    byId("show-all").addEventListener("click", () => {
      this.limit = Infinity;
      byId("show-all").hidden = true;
      this.fillTable();
    });
    byId("reset").addEventListener("click", () => {
      this.settings = { ...this.content.start };
      this.soon();
      this.fill();
    });
    this.fill();
  }

  fill() {
    for (const name of ["score", "completeness"]) {
      const input = document.querySelector(`input[name=${name}][value=${this.settings[name]}]`);
      input.checked = true;
    }
    for (const name of weightNames()) {
      byId(name).value = Math.log10(this.settings[name]);
      byId(name + "-number").value = this.settings[name];
      byId(name + "-number").setAttribute("aria-invalid", "false");
    }
  }

  // Once per picture, however quickly the slider moves.
  soon() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.update(); });
  }

  update() {
    const begin = performance.now();
    const kind = SCORES[this.settings.score];
    for (const name of weightNames()) {
      const used = kind.weights.includes(name);
      byId("field-" + name).hidden = !used;
      byId(name).setAttribute("aria-valuetext", String(this.settings[name]));
    }
    byId("completeness").disabled = !kind.completeness || !FORMULAS[this.settings.score];
    byId("formula").textContent = formulaText(this.settings);
    this.ranking = rank(this.group, this.settings);
    this.fillTable();
    this.colour();
    this.tell();
    if (this.chosen !== null) this.onChoose(this.chosen, false);
    this.milliseconds = performance.now() - begin;
  }

  // --- in words ----------------------------------------------------------------------------

  describe(place) {
    const candidate = this.group.candidates[place];
    const params = paramsText(candidate.params);
    const score = fixed(this.ranking.scored[place].score, 4);
    return `${candidate.extractor}${params ? ` (${params})` : ""} with ${kind_label(this.settings)} ` +
      `${score}, ${fixed(candidate.means.size, 1)} rules on average`;
  }

  tell() {
    const { order, choice } = this.ranking, winner = this.group.winner;
    const best = order[0];
    if (best === undefined || Number.isNaN(this.ranking.scored[best].score)) {
      byId("verdict").textContent = "No candidate has this score.";
      return;
    }
    const sentences = [element("strong", { text: `Best score: ${this.describe(best)}.` })];
    let extra = "";
    if (this.group.standard_errors !== null && choice !== null) {
      if (choice !== best) {
        extra += ` Counting the rules of all rows as well, the search would choose with these weights: ` +
          `${this.describe(choice)}.`;
      } else extra += " With these weights the search would choose it, too.";
    }
    if (winner !== null) {
      extra += ` The search's own winner, whose rules were kept, ` +
        (winner === best ? "is this one." : winner === choice ? "is the latter."
          : `has rank ${this.ranking.scored[winner].rank} of ${order.length}.`);
    }
    byId("verdict").replaceChildren(...sentences, extra);
    this.announce(byId("verdict").textContent);
  }

  // --- the leaderboard ---------------------------------------------------------------------

  makeTable() {
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
    this.limit = SHOWN;
    const all = byId("show-all");
    all.hidden = this.group.candidates.length <= SHOWN;
    all.textContent = `Show all ${this.group.candidates.length}`;
    byId("board-caption").textContent =
      `${plural(this.group.candidates.length, "candidate")}` +
      `${this.content.kind === "bench" ? ` on ${this.group.name}` : ""}: means over ` +
      (this.content.kind === "bench" ? "seeds and folds" : "the folds, on held-out rows") +
      "; ± is the deviation between them, c the completeness";
    byId("board-hint").textContent = "A heading's button sorts by its column, an extractor's " +
      "button chooses the candidate.";
    byId("board-print").textContent = this.group.candidates.length > PRINTED
      ? `Printed are the first ${PRINTED} of ${this.group.candidates.length} candidates.` : "";
    this.makeFailures();
  }

  // Rows are made when they are first shown: there may be very many.
  rowOf(place) {
    if (this.rows.has(place)) return this.rows.get(place);
    const candidate = this.group.candidates[place];
    const row = element("tr", { "data-place": place });
    row.texts = {};
    for (const column of this.columns) {
      const isHead = column.key === "extractor";
      const cell = element(isHead ? "th" : "td", {
        class: `${column.text ? "text" : "number"} ${column.key}`, scope: isHead ? "row" : null,
      });
      row.append(cell);
      if (["rank", "score", "spread"].includes(column.key)) {
        row.texts[column.key] = cell.appendChild(document.createTextNode(""));
      } else if (isHead) {
        row.button = element("button", {
          type: "button", class: "choose", text: candidate.extractor,
          "aria-pressed": String(place === this.chosen),
          onclick: () => this.choose(place, true),
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
    return fixed(candidate.means[column.key], column.digits === undefined ? 3 : column.digits);
  }

  makeFailures() {
    const failures = this.group.failures, box = byId("failures");
    const total = failures.reduce((sum, failure) => sum + failure.count, 0);
    if (!total) { box.replaceChildren(); return; }
    const what = this.content.kind === "bench" ? "run" : "trial";
    box.replaceChildren(element("details", {},
      element("summary", { text: `${plural(total, what)} gave no score and cannot be ranked` }),
      element("ul", {}, ...failures.map((failure) => element("li", {
        text: `${failure.extractor}: ${failure.count}, the first: ${failure.error || "unknown"}`,
      })))));
  }

  sortBy(column) {
    const first = column.greater ? column.greater() : false;
    this.sorted = this.sorted.key === column.key
      ? { key: column.key, down: !this.sorted.down } : { key: column.key, down: first };
    this.fillTable();
    this.announce(`Sorted by ${column.title}, ${this.sorted.down ? "greatest" : "least"} first.`);
  }

  fillTable() {
    const { scored, order, choice } = this.ranking, label = kind_label(this.settings);
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
      put(row.texts.rank, String(entry.rank));
      put(row.texts.score, fixed(entry.score, 4));
      put(row.texts.spread, fixed(entry.spread, 4));
      const missing = this.group.candidates[place].missing;
      put(row.texts.marks, [
        place === order[0] && !Number.isNaN(entry.score) ? "best score" : "",
        place === choice && place !== order[0] ? "chosen by these weights" : "",
        place === this.group.winner ? "search's winner" : "",
        missing ? `${missing} missing` : "",
      ].filter(Boolean).join(", "));
      row.classList.toggle("best", place === order[0]);
      return row;
    });
    const body = byId("board").tBodies[0];
    // Rows that stay where they are need no new layout.
    const same = body.rows.length === shown.length && shown.every((row, k) => body.rows[k] === row);
    if (!same) body.replaceChildren(...shown);
  }

  choose(place, moved = false) {
    this.chosen = place;
    for (const [at, row] of this.rows) {
      const chosen = at === place;
      row.button.setAttribute("aria-pressed", String(chosen));
      row.classList.toggle("chosen", chosen);
    }
    this.ring();
    if (place !== null) this.onChoose(place, true);
    if (moved) {
      this.announce(`Chosen: ${this.describe(place)}.`);
    }
  }

  // --- the plot ----------------------------------------------------------------------------

  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { text: read("--text"), grid: read("--line"), accent: read("--accent"),
             strong: read("--strong"), muted: read("--muted"), paper: read("--paper") };
  }

  makePlot() {
    const candidates = this.group.candidates.filter((c) => c.count);
    this.plotted = candidates.map((c) => c.place);
    const front = frontOf(this.group).map((place) => this.group.candidates[place].means);
    const colours = this.colours();
    // What moves with the weights (colours, rings) are styles and shapes: the points stay.
    const points = {
      type: "scatter", mode: "markers", customdata: this.plotted, hoverinfo: "none",
      x: candidates.map((c) => c.means.size), y: candidates.map((c) => c.means.loss),
      marker: {
        size: candidates.map((c) => 9 + 16 * (1 - c.means.completeness_volume)),
        color: candidates.map(() => shade(0)), opacity: 0.85,
        line: { width: 0.5, color: colours.paper },
      },
    };
    const line = {
      type: "scatter", mode: "lines", hoverinfo: "skip",
      x: front.map((means) => means.size), y: front.map((means) => means.loss),
      line: { color: colours.muted, width: 1.5, shape: "hv" },
    };
    const sizes = candidates.map((c) => c.means.size);
    // One long list must not push all others to the edge.
    const wide = Math.max(...sizes) > 10 * Math.min(...sizes);
    const most = Math.max(0, ...candidates.map((c) => c.means.loss)) || 1;
    const over = this.content.kind === "bench" ? "seeds and folds" : "the folds";
    const layout = {
      margin: { l: 60, r: 10, t: 30, b: 50 }, hovermode: "closest", showlegend: false,
      dragmode: "zoom",
      xaxis: wide
        ? { title: { text: `rules (mean over ${over}, logarithmic)` }, type: "log",
            tickvals: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }
        : { title: { text: `rules (mean over ${over})` }, zeroline: false, rangemode: "tozero" },
      // From a little below zero: a point without errors must not be cut in half.
      yaxis: { title: { text: `errors: ${content_names(this.group).loss}` }, zeroline: false,
               range: [-0.05 * most, 1.1 * most] },
    };
    Plotly.react("plot", [line, points], this.themed(layout, colours), {
      responsive: true, displaylogo: false,
      // By name, as some of the library's other buttons lead out of the page.
      modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    });
    if (!this.listening) this.listen();
  }

  listen() {
    this.listening = true;
    const plot = byId("plot"), tip = byId("tip");
    const placeOf = (event) => event.points.map((p) => p.customdata).find((p) => p !== undefined);
    plot.on("plotly_click", (event) => {
      const place = placeOf(event);
      if (place !== undefined) this.choose(place, true);
    });
    plot.on("plotly_hover", (event) => {
      const place = placeOf(event);
      if (place === undefined) return;
      tip.textContent = this.hover(place);
      tip.hidden = false;
      const box = plot.getBoundingClientRect();
      const left = event.event.clientX - box.left, top = event.event.clientY - box.top;
      tip.style.left = `${Math.max(0, Math.min(left + 14, box.width - tip.offsetWidth))}px`;
      tip.style.top = `${Math.max(0, Math.min(top + 14, box.height - tip.offsetHeight))}px`;
    });
    plot.on("plotly_unhover", () => { tip.hidden = true; });
  }

  themed(layout, colours) {
    const axis = { gridcolor: colours.grid, linecolor: colours.grid, tickcolor: colours.grid };
    return { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
             modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.accent },
             font: { color: colours.text, family: "system-ui, sans-serif", size: 13 },
             xaxis: { ...layout.xaxis, ...axis }, yaxis: { ...layout.yaxis, ...axis } };
  }

  // The page has turned dark or light, or goes to the printer.
  recolour() {
    const colours = this.colours();
    Plotly.restyle("plot", { "line.color": colours.muted }, [0]);
    Plotly.restyle("plot", { "marker.line.color": colours.paper }, [1]);
    Plotly.relayout("plot", {
      "font.color": colours.text, "modebar.color": colours.muted,
      "xaxis.gridcolor": colours.grid, "yaxis.gridcolor": colours.grid,
      "xaxis.linecolor": colours.grid, "yaxis.linecolor": colours.grid,
      shapes: this.rings(colours),
    });
  }

  colour() {
    const scores = this.plotted.map((place) => this.ranking.scored[place].score);
    const known = scores.filter(Number.isFinite);
    const least = Math.min(...known), greatest = Math.max(...known);
    const greater = SCORES[this.settings.score].greater;
    // The best are always the bright ones.
    this.shares = scores.map((score) => {
      if (!Number.isFinite(score)) return 0;
      const share = greatest > least ? (score - least) / (greatest - least) : 1;
      return greater ? share : 1 - share;
    });
    Plotly.restyle("plot", { "marker.color": [this.shares.map(shade)] }, [1]);
    const label = kind_label(this.settings);
    byId("scale-low").textContent = `${label} ${fixed(greater ? least : greatest, 3)}`;
    byId("scale-high").textContent = `${fixed(greater ? greatest : least, 3)} (best)`;
    this.ring();
  }

  // Rings stand at points, but do not grow with them.
  rings(colours) {
    const ring = (place, path, color) => {
      if (place === null || place === undefined || !this.group.candidates[place].count) return [];
      const means = this.group.candidates[place].means;
      return [{ type: "path", path, xref: "x", yref: "y", xsizemode: "pixel", ysizemode: "pixel",
                xanchor: means.size, yanchor: means.loss, line: { color, width: 2.5 } }];
    };
    return [
      ...ring(this.chosen, "M -16 -16 L 16 -16 L 16 16 L -16 16 Z", colours.muted),
      ...ring(this.ranking.order[0],
        "M 14 0 C 14 7.7 7.7 14 0 14 C -7.7 14 -14 7.7 -14 0 C -14 -7.7 -7.7 -14 0 -14 " +
        "C 7.7 -14 14 -7.7 14 0 Z", colours.accent),
      ...ring(this.group.winner, "M 0 -15 L 15 0 L 0 15 L -15 0 Z", colours.strong),
    ];
  }

  ring() {
    if (!this.ranking) return;
    const now = [this.chosen, this.ranking.order[0], this.group];
    if (this.ringed && now.every((value, k) => value === this.ringed[k])) return;
    this.ringed = now;
    Plotly.relayout("plot", { shapes: this.rings(this.colours()) });
  }

  hover(place) {
    const candidate = this.group.candidates[place], means = candidate.means;
    return [
      candidate.extractor,
      paramsText(candidate.params),
      `${kind_label(this.settings)} ${fixed(this.ranking.scored[place].score, 4)}, rank ` +
        `${this.ranking.scored[place].rank}`,
      `${fixed(means.size, 1)} rules, errors ${fixed(means.loss)}`,
      `complete: ${fixed(means.completeness_volume)} of the volume, ` +
        `${fixed(means.completeness_instances)} of the rows`,
    ].filter(Boolean).join("\n");
  }
}

// Viridis, which the colour-blind and printers can read as well: its colours at equal steps.
const VIRIDIS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
  [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

function shade(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const k = Math.min(Math.floor(at), VIRIDIS.length - 2), part = at - k;
  const mixed = VIRIDIS[k].map((c, i) => Math.round(c + part * (VIRIDIS[k + 1][i] - c)));
  return `rgb(${mixed.join()})`;
}

function weightNames() {
  return [...new Set(Object.values(SCORES).flatMap((score) => score.weights))];
}

function formulaText(settings) {
  const score = SCORES[settings.score];
  const better = `${score.greater ? "greater" : "smaller"} is better`;
  if (!FORMULAS[settings.score]) return `${score.label}, as the run recorded it; ${better}.`;
  return `${score.label} = ${score.text}; ${better}${score.weights.length ? "" : ", without weights"}. ` +
    `p: ${score.prediction}, r: rules${score.completeness
      ? `, c: completeness ${SHARES[settings.completeness]}.` : ". Completeness has no part in it."}`;
}

function kind_label(settings) {
  return SCORES[settings.score].label;
}

function content_names(group) {
  const regression = group.task === "regression";
  return { performance: regression ? "R²" : "F1", loss: regression ? "mean absolute error"
    : "1 − accuracy" };
}

function put(node, text) {
  if (node.data !== text) node.data = text;
}
