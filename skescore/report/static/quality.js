// Quality of the rules: three measures, a comparison with the black box and a constant, measures per
// class, and the parts of the data with most errors.

// Collects the measures of a candidate on held-out rows, or of its rules on the rows of the page.
// `right` and `explained` compare with the data, `agree` and `agreeExplained` with the model.
function collectMeasures(content, group, place, rules) {
  const candidate = place === null || place === undefined ? null : group.candidates[place];
  const view = rules ? rules.view : null, quality = view && view.quality;
  const heldOut = Boolean(candidate && candidate.count);
  const regression = (rules ? rules.set.task : group.task) === "regression";
  const byModel = group.reference === "black-box";
  const found = { heldOut, regression, byModel, right: null, error: null, explained: null, without: null,
                  agree: null, agreeExplained: null, tested: null, counted: null,
                  size: rules ? rules.rules.length : heldOut ? candidate.means.size : null,
                  always: quality ? quality.always : null, total: quality ? quality.total : null };
  // Counted for rules in the page; otherwise only the mean of the folds is known.
  if (view && view.uncovered !== undefined) {
    found.without = 100 * view.uncovered / view.total;
    found.counted = view.total;
  } else if (heldOut) found.without = 100 * (1 - candidate.means.completeness_instances);
  if (place !== null && place === group.winner && content.run) found.tested = content.run.test || null;
  if (heldOut) {
    const { means } = candidate, measured = (value) => (Number.isFinite(value) ? 100 * value : null);
    if (regression) {
      found.error = means.loss;
      found.explained = measured(means.correctness);
      found.agreeExplained = measured(means.fidelity);
    } else {
      found.right = measured(means.correctness);
      if (found.right === null && !byModel) found.right = measured(1 - means.loss);
      found.agree = measured(means.fidelity);
    }
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
    element("p", { class: "big" }, element("strong", { text: number, class: number.length > 5 || (unit && number.length > 2) ? "long" : null }), unit ? ` ${unit}` : ""),
    element("p", { class: "what", text }), note ? element("p", { class: "note-line", text: note }) : "");
}

// Names the rows on which agreement with the model was measured.
function unseenRows(group) {
  return group.unseen_generated ? "generated rows, which the model has not seen"
    : "held-out rows, on which the model was not fitted";
}

// Names the rows on which the score and its parts were measured.
function scoredRows(group) {
  return group.unseen_generated && group.reference === "black-box" ? "generated rows" : "held-out rows";
}

function tiles(content, group, place, rules) {
  const m = collectMeasures(content, group, place, rules), made = [];
  const weighed = m.weighed ? ", with weighted rows" : "";
  made.push(m.regression ? errorTile(group, m, weighed) : correctTile(group, m, weighed));
  made.push(agreementTile(group, m, weighed));
  if (m.without !== null) {
    const notes = [m.counted === null ? "on held-out rows" : `of all ${plural(m.counted, "row")} of the table`];
    if (rules && rules.view.otherwise && m.without > 0) notes.push(rules.view.otherwise);
    made.push(tile(percentText(m.without), "of 100", "rows are not covered by a rule", notes.join(" · ")));
  }
  if (m.size !== null) {
    const columns = rules ? `using ${rules.view.used.length} of ${plural(rules.names.length, "column")}` : "";
    made.push(tile(countText(m.size), "", m.size === 1 ? "rule" : "rules", columns));
  }
  return made.filter(Boolean);
}

function errorTile(group, m, weighed) {
  const from = m.byModel ? "difference from the model" : "error (data)", rows = scoredRows(group);
  const kind = `${rows}${rows === "generated rows" ? "" : weighed}`;
  if (m.tested) {
    const notes = m.error === null ? [] : [`average ${from} on ${kind}: ± ${shortNumber(m.error)}`];
    return tile(tableNumber(m.tested.rules), "", `R² on ${plural(m.tested.rows, "test row")} (data)`,
      [...notes, `model on test rows: ${tableNumber(m.tested.black_box)}`].join(" · "));
  }
  if (m.error === null || m.error === undefined) return null;
  const always = m.always && !m.byModel ? `always the mean (all rows): ± ${shortNumber(m.always.error)}` : "";
  return tile(`± ${shortNumber(m.error)}`, "", m.heldOut
    ? `average ${from} on ${kind}` : `average ${from} on these rows`, always);
}

function correctTile(group, m, weighed) {
  const accuracy = group.quality && group.quality.accuracy, notes = [];
  if (m.tested) {
    if (m.right !== null) notes.push(`held-out rows${weighed}: ${percentText(m.right)}`);
    notes.push(`model on test rows: ${percentText(100 * m.tested.black_box)}`);
    return tile(percentText(100 * m.tested.rules), "%",
      `of ${plural(m.tested.rows, "test row")} are right (data)`, notes.join(" · "));
  }
  if (m.right === null) return null;
  if (m.heldOut && Number.isFinite(accuracy)) {
    notes.push(`model${group.trained_here === false ? ", on rows on which it may have been trained" : ""}: ` +
      percentText(100 * accuracy));
  }
  if (m.always) notes.push(`always ${m.always.text} (all rows): ${percentText(100 * m.always.right / m.total)}`);
  return tile(percentText(m.right), "of 100", m.heldOut ? `held-out rows are right (data)${weighed}`
    : "of these rows are right (data)", notes.join(" · "));
}

function agreementTile(group, m, weighed) {
  const own = group.fidelity_weighed ? weighed : "", kind = group.unseen_generated ? "generated" : "held-out";
  if (m.tested && m.regression) {
    return tile(tableNumber(m.tested.fidelity), "", `R² against the model on ${plural(m.tested.rows, "test row")}`,
      m.agreeExplained === null ? "" : `${kind} rows${own}: ${tableNumber(m.agreeExplained / 100)}`);
  }
  if (m.tested) {
    return tile(percentText(100 * m.tested.fidelity), "%", `of ${plural(m.tested.rows, "test row")}: agree with the model`,
      m.agree === null ? "" : `${kind} rows${own}: ${percentText(m.agree)}`);
  }
  if (m.regression) {
    return m.agreeExplained === null ? null
      : tile(tableNumber(m.agreeExplained / 100), "", `R² against the model${own}`, `on ${unseenRows(group)}`);
  }
  return m.agree === null ? null
    : tile(percentText(m.agree), "of 100", `agree with the model${own}`, `on ${unseenRows(group)}`);
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

// Compares the rules with the black box and a constant, each on the rows that the hint names.
function comparisonPanel(content, group, place, rules) {
  const m = collectMeasures(content, group, place, rules), entries = [];
  const { accuracy, r2 } = group.quality || {};
  const knows = group.trained_here === false ? ", on rows on which it may have been trained" : "";
  const box = `Model (${group.black_box})${knows}`;
  const of = (value) => `${percentText(value)} of 100`;
  const part = (value) => `${value < 0 ? "worse than the mean" : `${percentText(value)} %`}`;
  const text = m.regression ? part : of, own = m.regression ? m.explained : m.right;
  if (own === null) return null;
  entries.push({ name: "These rules", value: own, text: text(own), kind: "ours" });
  const quality = m.regression ? r2 : accuracy;
  if (m.heldOut && Number.isFinite(quality)) {
    entries.push({ name: box, value: 100 * quality, text: text(100 * quality) });
  }
  if (m.regression) entries.push({ name: "Always the mean", value: 0, text: "0 %", kind: "base" });
  else if (m.always) {
    const share = 100 * m.always.right / m.total;
    entries.push({ name: `Always “${m.always.text}”`, value: share, text: of(share), kind: "base" });
  }
  const hint = m.heldOut ? `Compared with the data, on held-out rows unless a bar says otherwise${m.weighed ? "; rows are weighted"
    : m.always && !m.regression ? "; “always” on all rows" : ""}.` : "Compared with the data, on the passed rows.";
  return element("div", { class: "panel", id: "right-panel" },
    element("h3", { text: m.regression ? "Share of the variance of the data that the rules explain"
      : "Right (data), of 100 rows" }),
    bars(entries), element("p", { class: "hint", text: hint }));
}

function agreementPanel(content, group, place, rules) {
  const m = collectMeasures(content, group, place, rules);
  const value = m.regression ? m.agreeExplained : m.agree;
  if (value === null) return null;
  const text = m.regression ? `R² ${tableNumber(value / 100)}` : `${percentText(value)} of 100`;
  return element("div", { class: "panel", id: "agreement-panel" },
    element("h3", { text: m.regression ? "Share of the variance of the model's predictions that the rules explain" : "Agree with the model, of 100 rows" }),
    bars([{ name: "These rules", value, text, kind: "ours" }]),
    element("p", { class: "hint", text: `Compared with the predictions of the model (${group.black_box}), on ` +
      `${unseenRows(group)}${group.fidelity_weighed ? "; rows are weighted" : ""}.` }));
}

// Shows what --test measured.
function testPanel(content, group, place) {
  const test = content.run && place !== null && place === group.winner ? content.run.test : null;
  if (!test) return null;
  const isShare = group.task !== "regression";
  const text = (value) => (isShare ? `${percentText(100 * value)} of 100` : `R² ${tableNumber(value)}`);
  const entry = (name, value, kind) => ({ name, value: 100 * value, text: text(value), kind });
  return element("div", { class: "panel", id: "test-panel" },
    element("h3", { text: `On ${plural(test.rows, "test row")}` }),
    bars([entry("These rules: right (data)", test.rules, "ours"),
          entry(`Model (${group.black_box}): right (data)`, test.black_box),
          entry("These rules: agree with the model", test.fidelity, "ours")]),
    element("p", { class: "hint", text: `Rows of ${test.source}, which the search did not use; ` +
      `${percentText(100 * test.completeness_instances)} of 100 are covered by a rule.` }));
}

function classTable(rules, made) {
  const { quality } = rules.view;
  if (!quality || !quality.classes) return null;
  const share = (part, whole) => (whole ? `${percentText(100 * part / whole)} of 100` : "–");
  const cell = (label, text) => element("td", { class: "number", "data-label": label, text });
  return element("div", { class: "panel" },
    element("h3", { text: "Quality by class" }),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Classes, can be scrolled" },
      element("table", { class: "stacked", id: "class-table" },
        caption("Share of each class that the rules find, and share of its predictions that are right"),
        element("thead", {}, element("tr", {},
          element("th", { scope: "col", class: "text", text: "Class" }),
          ...["Rows", "Found", "Right when predicted"].map((text) =>
            element("th", { scope: "col", class: "number", text })))),
        element("tbody", {}, ...quality.classes.map((one) => element("tr", {},
          element("th", { scope: "row", class: "text", text: one.name }), cell("Rows", String(one.rows)),
          cell("Found", share(one.right, one.rows)),
          cell("Right when predicted", one.said ? share(one.right, one.said) : "never predicted")))))),
    element("p", { class: "hint", text: `Compared with the data, on all ${quality.total} rows` +
      `${made ? ", from which the rules were extracted" : ""}.` }));
}

function weakSegmentsPanel(rules) {
  const { quality } = rules.view;
  if (!quality) return null;
  const box = element("div", { class: "panel", id: "segments" },
    element("h3", { text: "Where the rules fail most" }));
  if (!quality.segments.length) {
    box.append(element("p", { text: quality.right === quality.total ? "The rules are right for all rows of the data."
      : "No part of the data was found in which the rules fail clearly more often than elsewhere." }));
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
    element("p", { class: "hint", text: `Compared with the data, over all ${quality.total} rows: ${text(overall)}. Listed: parts of the data, one column at a ` +
      `time, in which errors are significantly more frequent.${sampleNote(quality)}` }));
  return box;
}

function sampleNote(quality) {
  return quality.sampled ? ` Counted on a sample of ${plural(quality.sampled, "row")}.` : "";
}

function furtherMeasuresPanel(rules) {
  const { quality } = rules.view;
  if (!quality || !quality.left_out || !quality.left_out.length) return null;
  const text = (one) => (one.share ? `${percentText(100 * one.value)} of 100` : shortNumber(one.value));
  return element("div", { class: "panel", id: "left-out" },
    element("h3", { text: "Measures that the scores do not include" }),
    element("table", { class: "stacked" },
      caption("Length of the rules, overlaps on rows, and conditions that could be dropped"),
      element("thead", {}, element("tr", {},
        element("th", { scope: "col", class: "text", text: "Measure" }),
        element("th", { scope: "col", class: "number", text: "Value" }))),
      element("tbody", {}, ...quality.left_out.map((one) => element("tr", {},
        element("th", { scope: "row", class: "text", text: one.text }),
        element("td", { class: "number", "data-label": "Value", text: text(one) }))))),
    element("p", { class: "hint", text: "Rules with smaller values are easier to read. In a list, the first rule that holds predicts, " +
      `so some rows would have another prediction if the rules were read without their ELSE.${sampleNote(quality)}` }));
}

function showQuality(content, group, place, rules) {
  const parts = [testPanel(content, group, place), comparisonPanel(content, group, place, rules),
                 agreementPanel(content, group, place, rules)];
  if (rules) parts.push(classTable(rules, content.kind === "tune"), weakSegmentsPanel(rules), furtherMeasuresPanel(rules));
  const shown = parts.filter(Boolean);
  byId("quality").hidden = !shown.length;
  byId("quality-body").replaceChildren(...shown);
}
