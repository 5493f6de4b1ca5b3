// Quality of the rules: three measures, a comparison with the black box and a constant, measures per
// class, and the parts of the data with most errors.

// Collects the measures of a candidate on held-out rows, or of its rules on the rows of the page.
function collectMeasures(content, group, place, rules) {
  const candidate = place === null || place === undefined ? null : group.candidates[place];
  const view = rules ? rules.view : null, quality = view && view.quality;
  const heldOut = Boolean(candidate && candidate.count);
  const regression = (rules ? rules.set.task : group.task) === "regression";
  const found = { heldOut, regression, right: null, error: null, explained: null, without: null,
                  size: rules ? rules.rules.length : heldOut ? candidate.means.size : null,
                  always: quality ? quality.always : null, total: quality ? quality.total : null };
  // Counted for rules in the page; otherwise only the mean of the folds is known.
  if (view && view.uncovered !== undefined) found.without = 100 * view.uncovered / view.total;
  else if (heldOut) found.without = 100 * (1 - candidate.means.completeness_instances);
  if (heldOut) {
    const { means } = candidate;
    if (regression) {
      found.error = means.loss;
      found.explained = 100 * means.performance;
    } else found.right = 100 * (1 - means.loss);
    // A constant prediction is right on the share of weight of its class.
    found.weighed = group.weighed;
    if (group.always && quality) {
      found.always = { ...group.always, right: group.always.share * found.total };
    }
  } else if (quality) {
    if (regression) {
      found.error = quality.error;
      found.explained = quality.r2 === null ? null : 100 * quality.r2;
    } else found.right = 100 * quality.right / quality.total;
  }
  return found;
}

function tile(number, unit, text, note) {
  return element("li", { class: "tile" },
    element("p", { class: "big" }, element("strong", { text: number }), unit ? ` ${unit}` : ""),
    element("p", { class: "what", text }), note ? element("p", { class: "note-line", text: note }) : "");
}

function tiles(content, group, place, rules) {
  const m = collectMeasures(content, group, place, rules), made = [];
  const accuracy = group.quality && group.quality.accuracy;
  if (m.regression && m.error !== null && m.error !== undefined) {
    made.push(tile(`± ${shortNumber(m.error)}`, "", m.weighed ? "average error on new rows, as rows are weighed"
      : m.heldOut ? "average error on new rows"
      : "average error on these rows",
      m.always ? `always the mean: ± ${shortNumber(m.always.error)}` : ""));
  } else if (m.right !== null) {
    const references = [];
    if (m.heldOut && Number.isFinite(accuracy)) references.push(`black box: ${percentText(100 * accuracy)}`);
    if (m.always) references.push(`always ${m.always.text}: ${percentText(100 * m.always.right / m.total)}`);
    made.push(tile(percentText(m.right), "of 100", m.weighed ? "new rows are right, as rows are weighed" : m.heldOut ? "new rows are right" : "of these rows are right",
      references.join(" · ")));
  }
  if (m.without !== null) {
    made.push(tile(percentText(m.without), "of 100", "rows are left without a rule",
      rules && rules.view.otherwise && m.without > 0 ? rules.view.otherwise : ""));
  }
  if (m.size !== null) {
    const columns = rules ? `using ${rules.view.used.length} of ${plural(rules.names.length, "column")}` : "";
    made.push(tile(countText(m.size), "", m.size === 1 ? "rule" : "rules", columns));
  }
  return made;
}

// Makes bars from 0 to 100, each with its number as text.
function bars(entries) {
  return element("ul", { class: "bars" }, ...entries.map(({ name, value, text, kind }) => {
    const fill = element("span", { class: `fill ${kind || ""}` });
    fill.style.width = `${Math.max(0, Math.min(100, value))}%`;
    return element("li", {}, element("span", { class: "bar-name", text: name }),
      element("span", { class: "track", "aria-hidden": "true" }, fill),
      element("span", { class: "bar-value", text }));
  }));
}

function comparisonPanel(content, group, place, rules) {
  const m = collectMeasures(content, group, place, rules), entries = [];
  const of = (value) => `${percentText(value)} of 100`;
  const { accuracy, r2 } = group.quality || {};
  if (!m.regression && m.right !== null) {
    entries.push({ name: "These rules", value: m.right, text: of(m.right), kind: "ours" });
    if (m.heldOut && Number.isFinite(accuracy)) {
      entries.push({ name: `Black box (${group.black_box})`, value: 100 * accuracy, text: of(100 * accuracy) });
    }
    if (m.always) {
      const share = 100 * m.always.right / m.total;
      entries.push({ name: `Always “${m.always.text}”`, value: share, text: of(share), kind: "base" });
    }
  } else if (m.regression && m.explained !== null) {
    const part = (value) => `${value < 0 ? "worse than the mean" : `${percentText(value)} %`}`;
    entries.push({ name: "These rules", value: m.explained, text: part(m.explained), kind: "ours" });
    if (m.heldOut && Number.isFinite(r2)) {
      entries.push({ name: `Black box (${group.black_box})`, value: 100 * r2, text: part(100 * r2) });
    }
    entries.push({ name: "Always the mean", value: 0, text: "0 %", kind: "base" });
  }
  if (!entries.length) return null;
  return element("div", { class: "panel" },
    element("h3", { text: m.regression ? "How much of the differences they explain" : "Right, of 100 rows" }),
    bars(entries), element("p", { class: "hint", text: m.heldOut
      ? "Measured on rows that were held back while rules and black box were made" +
        (m.weighed ? "; rows are weighed." : m.always ? "; “always” on all rows." : ".")
      : "Counted on the rows that were given." }));
}

function classTable(rules, made) {
  const { quality } = rules.view;
  if (!quality || !quality.classes) return null;
  const share = (part, whole) => (whole ? `${percentText(100 * part / whole)} of 100` : "–");
  const cell = (label, text) => element("td", { class: "number", "data-label": label, text });
  return element("div", { class: "panel" },
    element("h3", { text: "Class by class" }),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Classes, can be scrolled" },
      element("table", { class: "stacked", id: "class-table" },
        caption("How many rows of each class are found, and how far a prediction of it can be trusted"),
        element("thead", {}, element("tr", {},
          element("th", { scope: "col", class: "text", text: "Class" }),
          ...["Rows", "Found", "Right when predicted"].map((text) =>
            element("th", { scope: "col", class: "number", text })))),
        element("tbody", {}, ...quality.classes.map((one) => element("tr", {},
          element("th", { scope: "row", class: "text", text: one.name }), cell("Rows", String(one.rows)),
          cell("Found", share(one.right, one.rows)),
          cell("Right when predicted", one.said ? share(one.right, one.said) : "never predicted")))))),
    element("p", { class: "hint", text: `Counted on all ${quality.total} rows${made ? ", of which the rules were made" : ""}.` }));
}

function weakSegmentsPanel(rules) {
  const { quality } = rules.view;
  if (!quality) return null;
  const box = element("div", { class: "panel", id: "segments" },
    element("h3", { text: "Where they fail most" }));
  if (!quality.segments.length) {
    box.append(element("p", { text: quality.right === quality.total ? "They are right in all rows of the data."
      : "No part of the data was found in which they fail clearly more often than elsewhere." }));
    return box;
  }
  const regression = rules.regression, overall = regression ? quality.error
    : 1 - quality.right / quality.total;
  const text = (error) => (regression ? `average error ${shortNumber(error)}`
    : `${percentText(100 * error)} of 100 wrong`);
  box.append(element("ol", { class: "segments" }, ...quality.segments.map((one) =>
    element("li", {}, element("span", { class: "condition", text: one.text }),
      element("span", { class: "segment-error", text: `${text(one.error)}` }),
      element("small", { text: ` ${plural(one.rows, "row")}` })))),
    element("p", { class: "hint", text: `Over all rows: ${text(overall)}. Parts of the data, one column at a ` +
      "time, in which errors are more frequent than chance explains." }));
  return box;
}

function furtherMeasuresPanel(rules) {
  const { quality } = rules.view;
  if (!quality || !quality.left_out || !quality.left_out.length) return null;
  const text = (one) => (one.share ? `${percentText(100 * one.value)} of 100` : shortNumber(one.value));
  return element("div", { class: "panel", id: "left-out" },
    element("h3", { text: "Limits of the scores" }),
    element("table", { class: "stacked" },
      caption("Length of the rules, overlaps on rows, and conditions that could be dropped"),
      element("thead", {}, element("tr", {},
        element("th", { scope: "col", class: "text", text: "Of these rules" }),
        element("th", { scope: "col", class: "number", text: "Here" }))),
      element("tbody", {}, ...quality.left_out.map((one) => element("tr", {},
        element("th", { scope: "row", class: "text", text: one.text }),
        element("td", { class: "number", "data-label": "Here", text: text(one) }))))),
    element("p", { class: "hint", text: "Less is easier to read. In a list the first rule that holds predicts: " +
      "so many rows would get something else if its rules were read without their ELSE." }));
}

function showQuality(content, group, place, rules) {
  const parts = [comparisonPanel(content, group, place, rules)];
  if (rules) parts.push(classTable(rules, content.kind === "tune"), weakSegmentsPanel(rules), furtherMeasuresPanel(rules));
  const shown = parts.filter(Boolean);
  byId("quality").hidden = !shown.length;
  byId("quality-body").replaceChildren(...shown);
}
