// Pictures of rules: the rows of each rule by their class or number, and one row on the conditions
// of the rule that decides it.

const MAX_PICTURED_RULES = 10, MAX_PICTURED_CLASSES = 8, MAX_PICTURED_VALUES = 12, MAX_PATH = 12;

// Shows each rule as a bar of its rows, with the target in the data; hidden for long lists.
function showGlance(box, rules) {
  const byRule = rules.view.by_rule, count = rules.rules.length;
  const classes = rules.view.class_texts;
  box.hidden = !byRule || !count || count > MAX_PICTURED_RULES ||
    (!rules.regression && classes.length > MAX_PICTURED_CLASSES);
  if (box.hidden) { box.replaceChildren(); return; }
  const lines = byRule.map((one, i) => ({ ...one, i })).filter((one) => one.i < count || one.rows);
  const target = rules.target || "the target";
  const draw = rules.regression ? numberLine(rules, lines) : classLine(rules, lines);
  const caption = rules.regression
    ? `Each line: range of ${target} in the data for the rows that a rule ${rules.voting ? "covers" : "predicts"} ` +
      "(the box contains the middle half). The mark is the median prediction."
    : `Each bar: the rows that a rule ${rules.voting ? "covers" : "predicts"}, by the value of ${target} in the data. ` +
      "Hatched parts are wrong.";
  box.replaceChildren(
    element("ol", { class: "glance-lines" }, ...lines.map(draw)),
    ...(rules.regression ? [] : [legendOf(rules)]),
    element("figcaption", { text: `${caption} All ${plural(rules.view.total, "row")} of the table.` }));
}

function lineOf(rules, one, track, text) {
  const isRule = one.i < rules.rules.length;
  const isFormula = isRule && rules.regression && typeof rules.rules[one.i].then !== "number";
  const output = isFormula ? "formula" : isRule ? rules.view.rules[one.i].output : "";
  const kind = isRule && !rules.regression ? ` class-${rules.codes[one.i] % 8}` : "";
  return element("li", {}, element("span", { class: "glance-number", "aria-hidden": "true", text: isRule ? String(one.i + 1) : "–" }),
    element("span", { class: `glance-output outcome${kind}`, text: isRule ? output : "no rule" }),
    track, element("span", { class: "glance-text", text }));
}

function classLine(rules, lines) {
  const most = Math.max(1, ...lines.map((one) => one.rows)), texts = rules.view.class_texts;
  return (one) => {
    const own = one.i < rules.rules.length ? rules.codes[one.i] : rules.view.fallback_code;
    const bar = element("span", { class: "glance-track", "aria-hidden": "true" });
    const order = [own, ...one.counts.map((_, k) => k).filter((k) => k !== own)].filter((k) => k >= 0);
    for (const k of order.filter((at) => one.counts[at])) {
      const name = texts[k] === undefined ? "other labels" : texts[k];
      const part = element("span", { title: `${name}: ${plural(one.counts[k], "row")}`,
        class: `glance-part class-${k % 8}${k === own ? "" : " wrong-part"}` });
      part.style.width = `${100 * one.counts[k] / most}%`;
      bar.append(part);
    }
    const right = own >= 0 ? one.counts[own] : 0;
    return lineOf(rules, one, bar, `${right} of ${plural(one.rows, "row")} right (data)`);
  };
}

function legendOf(rules) {
  return element("p", { class: "glance-legend" }, ...rules.view.class_texts.map((text, k) =>
    element("span", {}, element("span", { class: `glance-sign class-${k % 8}`, "aria-hidden": "true" }), ` ${text}`)));
}

function numberLine(rules, lines) {
  const values = lines.filter((one) => one.rows).flatMap((one) => [one.low, one.high, one.predicted])
    .filter((value) => typeof value === "number");
  const low = Math.min(...values), high = Math.max(...values);
  const at = (value) => `${high > low ? Math.max(0, Math.min(100, 100 * (value - low) / (high - low))) : 50}%`;
  return (one) => {
    const bar = element("span", { class: "glance-track number-track", "aria-hidden": "true" });
    if (!one.rows) return lineOf(rules, one, bar, "no rows");
    const part = (kind, from, to) => {
      const piece = element("span", { class: kind });
      piece.style.left = at(from);
      if (to !== undefined) piece.style.width = `calc(${at(to)} - ${at(from)})`;
      bar.append(piece);
    };
    part("whisker", one.low, one.high);
    part("middle-half", one.q1, one.q3);
    if (typeof one.predicted === "number") part("predicted-mark", one.predicted);
    return lineOf(rules, one, bar, `${plural(one.rows, "row")}, median ${shortNumber(one.median)} (data)`);
  };
}

// Shows one row on the conditions of the rule that decides it, after the rules that fail for it.
function rowPicture(rules, explained, row) {
  const { prediction } = explained;
  if (prediction.rule === undefined || prediction.rule < 0 || rules.voting) return [];
  const parts = [];
  if (rules.set.ordered && prediction.rule < MAX_PATH) parts.push(pathOf(rules, prediction.rule));
  const own = rules.rules[prediction.rule].if.flatMap((one) => one.conditions || [one]);
  const pictured = own.length ? own.map((condition) => ({ condition, rule: prediction.rule }))
    : failedConditions(rules, prediction.rule, row);
  const lines = pictured.map(({ condition, rule }) =>
    conditionLine(rules, condition, row, rule === prediction.rule ? "" : ` (rule ${rule + 1})`)).filter(Boolean);
  if (lines.length) parts.push(element("ul", { class: "row-lines" }, ...lines));
  return parts.length ? [element("div", { class: "row-picture", "aria-hidden": "true" }, ...parts)] : [];
}

// Returns the conditions that fail in the rules before the last one.
function failedConditions(rules, last, row) {
  if (!rules.set.ordered || last >= MAX_PATH) return [];
  return rules.rules.slice(0, last).flatMap((one, rule) => one.if
    .filter((part) => !conditionHolds(part, row))
    .flatMap((part) => (part.conditions || [part]).filter((own) => !conditionHolds(own, row)))
    .map((condition) => ({ condition, rule })));
}

function pathOf(rules, last) {
  const path = element("p", { class: "row-path" });
  for (let i = 0; i <= last; i += 1) {
    path.append(element("span", { class: `step ${i === last ? "holds" : "fails"}`,
      text: `${i + 1} ${i === last ? "✓" : "✗"}` }), i === last ? " → " : " ");
  }
  path.append(element("span", { class: `outcome class-${rules.regression ? 0 : rules.codes[last] % 8}` },
    element("strong", { text: rules.view.rules[last].output })));
  return path;
}

function conditionLine(rules, condition, row, ofRule) {
  const j = condition.feature;
  if (j === undefined) return null;
  const name = element("span", { class: "row-name", text: `${rules.names[j]}${ofRule}` });
  const value = row[j];
  if (condition.type === "one_of") return element("li", {}, name, valueChips(rules, condition, value));
  if (condition.type !== "interval" || isMissing(value)) return null;
  return element("li", {}, name, intervalTrack(rules, condition, Number(value)),
    element("span", { class: "row-value", text: shortNumber(Number(value)) }));
}

function valueChips(rules, condition, value) {
  const pair = ((rules.domain && rules.domain.categories) || []).find(([feature]) => feature === condition.feature);
  const values = pair ? pair[1] : condition.values;
  const isAllowed = (one) => condition.values.some((own) => sameValue(own, one)) !== Boolean(condition.negated);
  return element("span", { class: "chips" }, ...values.slice(0, MAX_PICTURED_VALUES).map((one) =>
    element("span", { class: `chip${isAllowed(one) ? " allowed" : ""}${sameValue(one, value) ? " actual" : ""}`,
                      text: String(one) })),
    values.length > MAX_PICTURED_VALUES ? " …" : "");
}

function intervalTrack(rules, condition, value) {
  const { domain } = rules, j = condition.feature;
  const bounds = [condition.lower, condition.upper].filter(Number.isFinite);
  const ends = domain ? [domain.lower[j], domain.upper[j]] : bounds;
  const low = Math.min(...ends, ...bounds, value), high = Math.max(...ends, ...bounds, value);
  const at = (point) => (high > low ? 100 * (point - low) / (high - low) : 50);
  const from = Number.isFinite(condition.lower) ? at(condition.lower) : 0;
  const to = Number.isFinite(condition.upper) ? at(condition.upper) : 100;
  const track = element("span", { class: "row-track" });
  const inside = element("span", { class: "inside" }), mark = element("span", { class: "mark" });
  inside.style.left = `${from}%`;
  inside.style.width = `${Math.max(1, to - from)}%`;
  mark.style.left = `${at(value)}%`;
  track.append(inside, mark);
  return track;
}
