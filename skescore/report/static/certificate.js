// Proven bounds on the best score of each number of rules, for the chosen score and weights.

class ProvenBounds {
  constructor(certificate) {
    this.certificate = certificate;
    this.box = byId("corridor");
    new ResizeObserver(debounce(60, () => {
      if (this.settings && this.box.clientWidth !== this.width) this.draw();
    })).observe(this.box);
    this.show({ ...certificate.settings, score: certificate.score });
  }

  // Shows the bounds for a score, or for the certificate's own score if the chosen one has no bounds.
  show(settings) {
    const { scores, score, kinds, given } = this.certificate;
    const isProven = Object.hasOwn(scores, settings.score);
    this.settings = isProven ? settings : { ...this.certificate.settings, score };
    const formula = formulaOf(this.settings.score), proven = scores[this.settings.score];
    if (!formula || !proven) {
      this.box.parentElement.hidden = true;
      return;
    }
    this.greater = SCORES[this.settings.score].greater;
    const value = (p, r, c) => formula({ ...this.settings, p, r, c });
    this.own = value(proven.given, given.n_rules, given["completeness_" + this.settings.completeness]);
    this.kinds = kinds.map(({ kind }, k) => ({
      kind,
      bounds: proven.kinds[k].map((bounds, i) => bounds.map((p) => value(p, i + 1, 1))),
    }));
    this.describeBounds();
    this.draw();
  }

  // Returns the largest possible improvement by rules of a kind.
  gap({ bounds }) {
    const possible = bounds.map(([, one]) => (this.greater ? one - this.own : this.own - one));
    return Math.max(0, ...possible);
  }

  describeBounds() {
    const label = scoreLabel(this.settings);
    const parts = this.kinds.map((kind) => {
      const gap = this.gap(kind), most = kind.bounds.length;
      return gap <= 0 ? `no ${kind.kind} of at most ${plural(most, "rule")} is better`
        : `no ${kind.kind} of at most ${plural(most, "rule")} is better by more than ` +
          (Math.ceil(gap * 1e4 - 1e-9) / 1e4).toFixed(4);
    });
    byId("corridor-text").textContent = `With this score and these weights, the rules have ${label} ` +
      `${tableNumber(this.own, 4)}: ${joinWords(parts)}.`;
  }

  draw() {
    this.width = Math.max(260, this.box.clientWidth || 520);
    const { width } = this, height = Math.round(Math.max(220, Math.min(330, width * 0.55)));
    const m = { left: 52, right: 14, top: 30, bottom: 40 }, size = this.certificate.given.n_rules;
    const sizes = Math.max(...this.kinds.map(({ bounds }) => bounds.length));
    const right = Math.max(sizes, size);
    // A single rule cannot separate classes, and its low score would compress the others.
    const first = sizes > 2 && size > 1 ? 1 : 0;
    const shown = [this.own, ...this.kinds.flatMap(({ bounds }) => bounds.slice(first).flat())];
    let low = Math.min(...shown), high = Math.max(...shown);
    const pad = (high - low || Math.abs(high) * 0.1 || 1) * 0.09;
    low -= pad; high += pad;
    const x = (v) => m.left + (v - first - 0.5) / (right - first) * (width - m.left - m.right);
    const y = (v) => m.top + (high - Math.max(low, Math.min(high, v))) / (high - low) *
      (height - m.top - m.bottom);
    const parts = [];
    for (const v of ticksBetween(low, high, 5)) {
      parts.push(
        svgElement("line", { class: "grid", x1: m.left, x2: width - m.right, y1: y(v), y2: y(v) }),
        svgElement("text", { class: "tick", x: m.left - 8, y: y(v) + 4, "text-anchor": "end" }, shortNumber(v)));
    }
    for (let r = first + 1; r <= right; r++) {
      if (right > 20 && r % 5) continue;
      parts.push(svgElement("text", { class: "tick", x: x(r), y: height - m.bottom + 18,
                                 "text-anchor": "middle" }, String(r)));
    }
    parts.push(
      svgElement("line", { class: "axis", x1: m.left, x2: width - m.right, y1: height - m.bottom,
                      y2: height - m.bottom }),
      svgElement("text", { class: "title", x: width - m.right, y: height - 4, "text-anchor": "end" },
        "number of rules"),
      svgElement("text", { class: "title", x: 2, y: 12 },
        `${scoreLabel(this.settings)} on these rows (${this.greater ? "greater" : "smaller"} is better)`));
    this.kinds.forEach(({ bounds }, k) => {
      const steps = bounds.slice(first);
      const path = (side) => steps.map((one, i) =>
        `${i ? "L" : "M"}${x(i + first + 0.5)} ${y(one[side])}H${x(i + first + 1.5)}`).join("");
      const back = steps.map((one, i) => [one[1], i]).reverse().map(([one, i]) =>
        `L${x(i + first + 1.5)} ${y(one)}H${x(i + first + 0.5)}`).join("");
      const group = svgElement("g", { class: `proven-kind series-${k}` },
        svgElement("path", { class: "band", d: `${path(0)}${back}Z` }),
        svgElement("path", { class: "bound", d: path(1) }),
        svgElement("path", { class: "front", d: path(0) }));
      steps.forEach(([found], i) => {
        const cx = x(i + first + 1 + 0.3 * (k - (this.kinds.length - 1) / 2)), cy = y(found);
        group.append(k ? svgElement("rect", { class: "dot", x: cx - 5, y: cy - 5, width: 10, height: 10 })
          : svgElement("circle", { class: "dot", cx, cy, r: 5.5 }));
      });
      parts.push(group);
    });
    const cx = x(size), cy = y(this.own);
    parts.push(svgElement("path", { class: "winner-ring",
                               d: `M${cx} ${cy - 9}L${cx + 9} ${cy}L${cx} ${cy + 9}L${cx - 9} ${cy}Z` }));
    this.box.replaceChildren(svgElement("svg", {
      role: "img", class: "scatter", width, height, viewBox: `0 0 ${width} ${height}`,
      "aria-label": "Bounds on the best score for each number of rules",
    }, ...parts));
  }
}
