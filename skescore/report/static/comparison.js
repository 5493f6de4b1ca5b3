// Two runs side by side: their rules, their measures, and both trade-offs in one plot.

class Comparison {
  constructor(content) {
    this.content = content;
    this.runs = content.runs.map((run, position) => {
      Object.assign(SCORES, run.scores);
      const group = run.groups[0];
      computeMeans(group);
      const place = group.winner === null ? -1 : group.winner;
      const rules = new Rules(run.views[String(place)], run.target);
      const box = byId(`run-${position}`);
      const candidate = group.winner === null ? null : group.winner;
      box.querySelector(".tiles").replaceChildren(...tiles(run, group, candidate, rules));
      box.querySelector(".hint").textContent = predictionHint(rules);
      showCards(box.querySelector(".cards"), rules, null, { details: false });
      return { run, group, rules, candidate };
    });
    this.table();
    this.plot();
  }

  table() {
    const measured = this.runs.map(({ run, group, rules, candidate }) => ({
      ...collectMeasures(run, group, candidate, rules), group, rules, candidate,
    }));
    const of = (value) => (value === null || value === undefined ? "–" : `${percentText(value)} of 100`);
    const rows = [["Rules", (m) => String(m.rules.rules.length)],
      ["Conditions", (m) => String(m.rules.rules.reduce((sum, rule) => sum + rule.if.length, 0))],
      ["Columns used", (m) => String(m.rules.view.used.length)]];
    if (measured.some((m) => m.right !== null)) rows.unshift(["Right (data)", (m) => of(m.right)]);
    if (measured.some((m) => m.error !== null)) {
      rows.unshift(["Average error", (m) => (m.error === null ? "–"
        : `${shortNumber(m.error)} (${m.byModel ? "model" : "data"})`)]);
    }
    rows.push(["Not covered by a rule", (m) => of(m.without)]);
    const accuracy = (m) => m.group.quality && m.group.quality.accuracy;
    if (measured.some((m) => Number.isFinite(accuracy(m)))) {
      const known = (m) => (m.group.trained_here === false ? ", on rows on which it may have been trained" : "");
      rows.push(["Model right", (m) => of(100 * accuracy(m)) + known(m)]);
    }
    const rowsOf = (m) => (m.heldOut ? `${m.weighed ? "weighted " : ""}held-out rows` : "the rows of the page");
    rows.push(["Compared with the data on", rowsOf]);
    const agree = (m) => of(m.agree);
    if (measured.some((m) => m.agree !== null)) {
      rows.push(["Agrees with the model", agree],
        ["Compared with the model on", (m) => (m.group.unseen_generated ? "generated rows" : rowsOf(m))]);
    }
    for (const [name, score] of Object.entries(SCORES)) {
      if (score.recorded || this.content.differences.length) continue;
      rows.push([score.label, (m) => {
        if (m.candidate === null) return "–";
        const { start } = this.runs[measured.indexOf(m)].run;
        return tableNumber(rank(m.group, { ...start, score: name }).scored[m.candidate].score, 4);
      }]);
    }
    byId("versus").tBodies[0].replaceChildren(...rows.map(([title, value]) => element("tr", {},
      element("th", { scope: "row", class: "text", text: title }),
      ...measured.map((m, at) => element("td", {
        class: "number", "data-label": this.content.names[at], text: value(m) })))));
  }

  plot() {
    const axes = this.runs.map(({ group, run }) =>
      qualityAxis(group, { ...run.start, score: "ice" }));
    const points = this.runs.flatMap(({ group, candidate }, at) => {
      const front = new Set(frontOf(group, axes[at]));
      return group.candidates.filter((c) => c.count).map((c) => ({
        key: `${at}-${c.place}`, x: c.means.size, y: axes[at].of(c), series: at,
        front: front.has(c.place) || c.place === candidate, candidate: c, axis: axes[at],
      }));
    });
    byId("both").hidden = !points.length || axes[0].title !== axes[1].title || this.content.differences.length > 0;
    if (byId("both").hidden) return;
    const pointByKey = new Map(points.map((point) => [point.key, point]));
    this.scatter = new Scatter(byId("plot"), {
      onChoose: (key) => {
        this.scatter.mark(key, null);
        byId("announcer").textContent = this.scatter.describe(key).join(", ");
      },
      describe: (key) => {
        const { candidate, axis, series, y } = pointByKey.get(key);
        return [`${this.content.names[series]}: ${countText(candidate.means.size)} rules, ${axis.text(y)}`,
                candidate.extractor];
      },
      label: "Best trade-offs of both runs",
    });
    this.scatter.show({ points, lines: [], axis: { title: axes[0].title,
      most: axes[0].greater ? 100 : undefined } });
    byId("better").textContent = axes[0].greater ? "higher" : "lower";
  }
}
