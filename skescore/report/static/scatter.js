// A scatter plot in SVG: points by number of rules and by quality. Colors come from the style sheet.
// Points on the front are a group of radio buttons: Tab reaches it, arrows choose.

const SVG = "http://www.w3.org/2000/svg";

function svgElement(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// Returns whether two numbers differ by more than float noise.
function isRange(low, high) {
  return high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high));
}

// Returns about `count` round numbers between two.
function ticksBetween(low, high, count) {
  if (!isRange(low, high)) return [low];
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough - 1e-12);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

class Scatter {
  // `describe` returns the lines of a tooltip; the first one names the point.
  constructor(box, { onChoose, describe, label }) {
    Object.assign(this, { box, onChoose, describe, label });
    this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.root = svgElement("svg", { role: "radiogroup", "aria-label": label, class: "scatter" });
    box.replaceChildren(this.root, this.tip);
    this.root.addEventListener("keydown", (event) => this.onKeyDown(event));
    this.root.addEventListener("click", (event) => {
      const point = this.pointOf(event.target);
      if (point) this.onChoose(point.key);
    });
    this.root.addEventListener("pointermove", (event) => {
      const point = this.pointOf(event.target);
      if (point) this.showTip(point);
      else this.tip.hidden = true;
    });
    this.root.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.root.addEventListener("focusin", (event) => this.showTip(this.pointOf(event.target)));
    this.root.addEventListener("focusout", () => { this.tip.hidden = true; });
    this.nodes = new Map();
    new ResizeObserver(debounce(60, () => {
      if (this.data && box.clientWidth && box.clientWidth !== this.width) this.draw();
    })).observe(box);
    // Printed pages have another width than the screen.
    matchMedia("print").addEventListener("change", () => { if (this.data) this.draw(); });
  }

  pointOf(node) {
    const found = node.closest && node.closest("[data-point]");
    return found ? this.byName.get(found.dataset.point) : null;
  }

  // points: { key, x, y, front, series }; lines: horizontal ones { y, text }.
  show(data) {
    this.data = data;
    this.byName = new Map(data.points.map((point) => [String(point.key), point]));
    this.draw();
  }

  scales() {
    const { points, axis, lines } = this.data;
    const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const right = Math.max(1, ...xs), left = Math.min(...xs);
    // A logarithmic axis keeps a single long list from compressing the other points.
    const logarithmic = right > 12 * Math.max(1, left) && left > 0;
    let low = Math.min(...ys), high = Math.max(...ys);
    const range = isRange(low, high) ? high - low : 0;
    for (const line of lines) {
      // Lines far away from all points are hidden, since they would compress the points.
      const room = (range || 1) * 0.6;
      line.shown = line.y >= low - room && line.y <= high + room;
      if (line.shown) { low = Math.min(low, line.y); high = Math.max(high, line.y); }
    }
    const pad = ((isRange(low, high) && high - low) || Math.abs(high) * 0.1 || 1) * 0.09;
    low -= pad; high += pad;
    if (axis.most !== undefined) high = Math.min(high, axis.most + pad * 0.6);
    const { width, height } = this, m = this.margin;
    const from = logarithmic ? Math.max(0.8, left * 0.8) : Math.max(0, Math.min(left - 0.6, 1));
    const to = logarithmic ? right * 1.25 : right + Math.max(0.6, right * 0.06);
    const place = (v) => (logarithmic ? (Math.log(v) - Math.log(from)) / (Math.log(to) - Math.log(from))
      : (v - from) / (to - from));
    return {
      x: (v) => m.left + place(v) * (width - m.left - m.right),
      y: (v) => m.top + (high - v) / (high - low) * (height - m.top - m.bottom),
      xTicks: logarithmic
        ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000].filter((v) => v >= from && v <= to)
        : ticksBetween(from, to, Math.min(8, Math.round(width / 60))).filter(Number.isInteger),
      yTicks: ticksBetween(low, high, 5).filter((v) => axis.most === undefined || v <= axis.most),
    };
  }

  draw() {
    this.width = Math.max(260, this.box.clientWidth || 520);
    this.height = this.data.height || Math.round(Math.max(220, Math.min(330, this.width * 0.55)));
    this.margin = { left: 46, right: 14, top: 30, bottom: 40 };
    const { width, height, margin: m } = this, { axis, points, lines } = this.data;
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("width", width);
    this.root.setAttribute("height", height);
    const scale = this.scale = this.scales();
    const parts = [];
    for (const v of scale.yTicks) {
      parts.push(svgElement("line", { class: "grid", x1: m.left, x2: width - m.right,
                                 y1: scale.y(v), y2: scale.y(v) }),
        svgElement("text", { class: "tick", x: m.left - 8, y: scale.y(v) + 4, "text-anchor": "end" },
          shortNumber(v)));
    }
    for (const v of scale.xTicks) {
      parts.push(svgElement("text", { class: "tick", x: scale.x(v), y: height - m.bottom + 18,
                                 "text-anchor": "middle" }, String(v)));
    }
    parts.push(svgElement("line", { class: "axis", x1: m.left, x2: width - m.right,
                               y1: height - m.bottom, y2: height - m.bottom }),
      svgElement("text", { class: "title", x: width - m.right, y: height - 4, "text-anchor": "end" },
        "number of rules"),
      svgElement("text", { class: "title", x: 2, y: 12 }, axis.title));
    for (const line of lines.filter((one) => one.shown)) {
      parts.push(svgElement("line", { class: "level", x1: m.left, x2: width - m.right,
                                 y1: scale.y(line.y), y2: scale.y(line.y) }),
        svgElement("text", { class: "level-text", x: width - m.right, y: scale.y(line.y) - 5,
                        "text-anchor": "end" }, line.text));
    }
    const series = [...new Set(points.map((p) => p.series || 0))];
    for (const one of series) {
      const front = points.filter((p) => p.front && (p.series || 0) === one)
        .sort((a, b) => a.x - b.x);
      const path = front.map((p, k) => (k ? `H${scale.x(p.x)}V${scale.y(p.y)}`
        : `M${scale.x(p.x)} ${scale.y(p.y)}`)).join("");
      if (path) parts.push(svgElement("path", { class: `front series-${one}`, d: path }));
    }
    this.marks = svgElement("g", { "aria-hidden": "true" });
    this.nodes = new Map();
    const nodes = [...points].sort((a, b) => Boolean(a.front) - Boolean(b.front))
      .map((point) => this.node(point));
    this.root.replaceChildren(svgElement("g", { "aria-hidden": "true" }, ...parts), this.marks, ...nodes);
    this.mark(this.chosen, this.winner);
  }

  node(point) {
    const x = this.scale.x(point.x), y = this.scale.y(point.y);
    const shape = point.series
      ? svgElement("rect", { x: x - 5, y: y - 5, width: 10, height: 10, class: "dot" })
      : svgElement("circle", { cx: x, cy: y, r: point.front ? 6 : 4, class: "dot" });
    const kind = `point series-${point.series || 0}${point.front ? " on-front" : ""}` +
      `${point.faded ? " faded" : ""}`;
    const node = svgElement("g", point.front
      ? { class: kind, "data-point": point.key, role: "radio", "aria-checked": "false", tabindex: -1,
          "aria-label": this.describe(point.key).join(", ") }
      : { class: kind, "data-point": point.key, "aria-hidden": "true" });
    // A larger invisible circle makes the point easier to touch.
    if (point.front) node.append(svgElement("circle", { cx: x, cy: y, r: 13, class: "reach" }));
    node.append(shape);
    this.nodes.set(point.key, node);
    return node;
  }

  // Marks the chosen point and the winner of the search.
  mark(chosen, winner) {
    this.chosen = chosen;
    this.winner = winner;
    if (!this.data) return;
    const at = (key) => {
      const point = key === null || key === undefined ? null : this.byName.get(String(key));
      return point && [this.scale.x(point.x), this.scale.y(point.y)];
    };
    const parts = [], won = at(winner), now = at(chosen);
    if (won) {
      const [x, y] = won;
      parts.push(svgElement("path", { class: "winner-ring",
                                 d: `M${x} ${y - 17}L${x + 17} ${y}L${x} ${y + 17}L${x - 17} ${y}Z` }));
    }
    if (now) parts.push(svgElement("circle", { class: "chosen-ring", cx: now[0], cy: now[1], r: 10 }));
    this.marks.replaceChildren(...parts);
    let reached = false;
    for (const [key, node] of this.nodes) {
      const is = key === chosen;
      node.classList.toggle("chosen", is);
      if (!node.hasAttribute("role")) continue;
      node.setAttribute("aria-checked", String(is));
      node.setAttribute("tabindex", is ? 0 : -1);
      reached = reached || is;
    }
    const first = [...this.nodes.values()].find((node) => node.hasAttribute("role"));
    if (!reached && first) first.setAttribute("tabindex", 0);
  }

  onKeyDown(event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const point = this.pointOf(event.target);
    if (!point || (!step && ![" ", "Enter"].includes(event.key))) return;
    event.preventDefault();
    const front = this.data.points.filter((p) => p.front)
      .sort((a, b) => (a.series || 0) - (b.series || 0) || a.x - b.x);
    const next = step ? front[front.indexOf(point) + step] : point;
    if (!next) return;
    this.onChoose(next.key);
    this.nodes.get(next.key).focus();
  }

  showTip(point) {
    if (!point) return;
    this.tip.textContent = this.describe(point.key).join("\n");
    this.tip.hidden = false;
    const left = this.scale.x(point.x) + 14, top = this.scale.y(point.y) + 14;
    const room = this.width - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(left, room))}px`;
    this.tip.style.top = `${top + this.tip.offsetHeight > this.height
      ? Math.max(0, top - this.tip.offsetHeight - 28) : top}px`;
  }
}
