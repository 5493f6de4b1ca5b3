// The chosen candidate: its numbers, its rules, their rows, a row to try, and its exports.

const FOLDS_SHOWN = 12;

// In a span of its own, which stays in sight when the table is scrolled sideways.
function caption(text) {
  return element("caption", {}, element("span", { text }));
}

function showCandidate(group, place, ranking, settings, embedded) {
  const candidate = group.candidates[place], entry = ranking.scored[place];
  const marks = [];
  if (place === group.winner) marks.push("the search's winner");
  if (place === ranking.order[0]) marks.push("the best score with these weights");
  const params = Object.entries(candidate.params);
  const facts = [
    ["Extractor", candidate.extractor + (marks.length ? ` – ${marks.join(", ")}` : "")],
    ["Parameters", params.length ? paramsText(candidate.params) : "none searched"],
    [kind_label(settings), `${fixed(entry.score, 4)} ± ${fixed(entry.spread, 4)}, rank ` +
      `${entry.rank} of ${group.candidates.length}`],
    ["Held-out rows", `performance ${fixed(candidate.means.performance)}, errors ` +
      `${fixed(candidate.means.loss)}, ${fixed(candidate.means.size, 1)} rules, complete ` +
      `${fixed(candidate.means.completeness_volume)} by volume and ` +
      `${fixed(candidate.means.completeness_instances)} by rows`],
  ];
  if (candidate.missing) {
    facts.push(["Missing", `${candidate.missing} of ${candidate.missing + candidate.count} runs ` +
      "gave no score; the means are those of the others"]);
  }
  const list = element("dl", { class: "facts" }, ...facts.map(([name, text]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text }))));
  const parts = [list];
  if (candidate.count && candidate.count <= FOLDS_SHOWN) parts.push(foldTable(candidate, entry, settings));
  if (!embedded) {
    parts.push(element("p", { class: "note", text: group.winner === null && !group.has_rules
      ? "A bench keeps what was measured, not the rules."
      : "The rules of this candidate are not in this page: the search keeps those of its winner, " +
        "and only some of the front were made again." }));
  }
  byId("chosen-body").replaceChildren(...parts);
}

function foldTable(candidate, entry, settings) {
  const names = { performance: "performance", loss: "errors", size: "rules",
                  completeness_volume: "c volume", completeness_instances: "c rows" };
  const row = (title, values, digits) => element("tr", {},
    element("th", { scope: "row", class: "text", text: title }),
    ...values.map((value) => element("td", { class: "number", text: fixed(value, digits) })));
  return element("details", {},
    element("summary", { text: "Fold by fold" }),
    element("div", { class: "scroll", role: "region", tabindex: "0",
                     "aria-label": "Folds, can be scrolled" },
      element("table", {},
        caption("What was measured on each fold"),
        element("thead", {}, element("tr", {}, element("th", { scope: "col", text: "Measure" }),
          ...entry.folds.map((_, k) => element("th", { scope: "col", class: "number",
                                                       text: String(k + 1) })))),
        element("tbody", {}, row(kind_label(settings), entry.folds, 4),
          ...Object.entries(names).map(([key, title]) => row(title, candidate.folds[key], 3))))));
}

const REPORT_COLUMNS = [
  ["precision", "Precision", 3], ["coverage", "Coverage", 3], ["c2", "C2", 3],
  ["fdr_p_value", "p-value", 3], ["overlap", "Overlap", 3], ["unique_rows", "Only it", 0],
];

function showRules(rules, rows, isWinner, extractor) {
  const view = rules.view, report = view.report, regression = rules.regression;
  byId("rules-hint").textContent = rules.voting
    ? "All rules that hold predict together." : rules.set.ordered
      ? "The first rule that holds predicts." : rules.set.disjoint
        ? "No two rules hold for the same row." : "Of several rules that hold the purest predicts.";
  byId("rule-caption").textContent =
    `${plural(view.rules.length, "rule")} of ${extractor}, extracted from all rows` +
    (rows ? `. The measures are counted on the ${rows.total} rows of the data, which the rules ` +
      "were made from; they say nothing of new rows" : "") + ".";
  const heads = ["Rule", "If", "Then"];
  if (rules.voting) heads.push("Weight");
  if (!view.holds) heads.push("Seen");
  if (view.holds) heads.push("Holds for");
  if (view.assigned) heads.push("Assigned rows");
  if (report) heads.push(...REPORT_COLUMNS.map((column) => column[1]), "Significant");
  if (rows) heads.push("Rows");
  const texts = new Set(["Rule", "If", "Then", "Weight", "Seen"]);
  const body = view.rules.map((rule, i) => {
    const cells = [
      element("th", { scope: "row", class: "number", text: String(i + 1) }),
      element("td", { class: "text rule", text: rule.premise }),
      // A linear formula needs room, a class does not.
      element("td", { class: rule.output.length > 30 ? "text long" : "text", text: rule.output }),
    ];
    if (rules.voting) cells.push(element("td", { class: "text", text: rule.weight }));
    if (!view.holds) cells.push(element("td", { class: "text", text: rule.seen }));
    if (view.holds) cells.push(element("td", { class: "number", text: String(view.holds[i]) }));
    if (view.assigned) cells.push(element("td", { class: "number", text: String(view.assigned[i]) }));
    if (report) {
      for (const [key, , digits] of REPORT_COLUMNS) {
        cells.push(element("td", { class: "number", text: fixed(report[key][i], digits) }));
      }
      cells.push(element("td", { class: "text word", text: report.significant[i] ? "yes" : "no" }));
    }
    if (rows) {
      cells.push(element("td", { class: "text word no-print" }, element("button", {
        type: "button", class: "choose", text: "show", "aria-label": `Show rows of rule ${i + 1}`,
        onclick: () => showRows(rules, rows, i),
      })));
    }
    return element("tr", {}, ...cells);
  });
  const table = byId("rule-table");
  table.tHead.replaceChildren(element("tr", {}, ...heads.map((title) =>
    element("th", { scope: "col", text: title,
                    class: (texts.has(title) ? "text" : "number") +
                      (title === "Rows" ? " no-print" : "") }))));
  table.tBodies[0].replaceChildren(...body);
  const closing = view.text.split("\n").filter((line) => /^(together|otherwise)/.test(line));
  if (view.uncovered !== undefined) {
    closing.push(`${plural(view.uncovered, "row")} of ${rows ? rows.total : "the data"} without a rule`);
  }
  if (report) {
    closing.push(regression
      ? "Precision and coverage take the rows near a rule's value for right; the p-value is " +
        "corrected for false discoveries (Benjamini and Hochberg)."
      : "Precision: share of the rule's rows that have its class. Coverage: share of the class's " +
        "rows among them. p-value: corrected for false discoveries (Benjamini and Hochberg).");
    closing.push(`A rule's rows are here those that ${view.by_assigned ? "are assigned to it, since the first " +
      "rule that holds predicts alone" : "it holds for"}. Overlap: share of the rows it holds for that ` +
      "other rules hold for as well. Only it: rows that no other rule holds for.");
  } else if (view.report_error) closing.push(`No measures of single rules: ${view.report_error}`);
  byId("rule-closing").replaceChildren(...closing.map((text) => element("p", { class: "hint", text })));
  byId("rule-rows").replaceChildren();
}

function sampleRow(rules, rows, k) {
  const row = new Array(rules.names.length).fill(null);
  rows.features.forEach((feature, at) => { row[feature] = rows.columns[at][k]; });
  return row;
}

function showRows(rules, rows, i) {
  const found = rows.numbers.map((_, k) => k)
    .filter((k) => rules.ruleHolds(i, sampleRow(rules, rows, k)));
  const predicted = (k) => rules.says(rules.predict(sampleRow(rules, rows, k)));
  const total = rules.view.holds[i];
  const box = byId("rule-rows");
  box.replaceChildren(
    element("h3", { text: `Rows of rule ${i + 1}` }),
    element("div", { class: "scroll", role: "region", tabindex: "0",
                     "aria-label": "Rows of the rule, can be scrolled" },
      element("table", {},
        caption(
          `${found.length} of the ${total} rows that rule ${i + 1} holds for (this page ` +
            `holds a sample of ${rows.numbers.length} of ${rows.total} rows, and of the features ` +
            "those that some rule looks at)"),
        element("thead", {}, element("tr", {},
          ...["Row", ...rows.features.map((j) => rules.names[j]), rows.target, "Rules say", ""]
            .map((text) => (text ? element("th", { scope: "col", class: "number", text })
              : element("td", {}))))),
        element("tbody", {}, ...found.map((k) => element("tr", {},
          element("th", { scope: "row", class: "number", text: String(rows.numbers[k]) }),
          ...rows.columns.map((column) => element("td", { class: "number",
                                                          text: fullValue(column[k]) })),
          element("td", { class: "number", text: fullValue(rows.targets[k]) }),
          element("td", { class: "number", text: predicted(k) }),
          element("td", {}, element("button", {
            type: "button", class: "choose", text: "try", "aria-label": `Try row ${rows.numbers[k]}`,
            onclick: () => {
              tryRow.fill(sampleRow(rules, rows, k));
              byId("try").scrollIntoView();
            },
          }))))))));
  box.scrollIntoView({ block: "nearest" });
}

// A form for a row, and what the rules say of it.
class TryRow {
  constructor() {
    this.at = 0;
    byId("row-form").addEventListener("submit", (event) => event.preventDefault());
    byId("next-row").addEventListener("click", () => {
      if (!this.rows || !this.rows.numbers.length) return;
      this.at = (this.at + 1) % this.rows.numbers.length;
      this.fill(sampleRow(this.rules, this.rows, this.at));
    });
  }

  show(rules, rows) {
    this.rules = rules;
    this.rows = rows;
    byId("next-row").hidden = !rows || !rows.numbers.length;
    this.inputs = new Map(rules.view.used.map((j) => [j, this.input(j)]));
    byId("row-form").replaceChildren(...[...this.inputs].map(([j, input]) =>
      element("div", { class: "field" },
        element("label", { for: input.id, text: rules.names[j] }), input,
        element("small", { text: this.rangeText(j) }))));
    if (!this.inputs.size) {
      byId("row-form").replaceChildren(element("p", { text: "The rules look at no feature." }));
    }
    this.fill(rows && rows.numbers.length ? sampleRow(rules, rows, 0) : this.middle());
  }

  categories(j) {
    const domain = this.rules.domain;
    const pair = domain && (domain.categories || []).find(([feature]) => feature === j);
    return pair ? pair[1] : null;
  }

  input(j) {
    const known = this.categories(j), id = `value-${j}`;
    let made;
    if (known) {
      made = element("select", { id }, element("option", { value: "", text: "(missing)" }),
        ...known.map((value, k) => element("option", { value: String(k), text: String(value) })));
    } else if (this.isText(j)) made = element("input", { id, type: "text" });
    else made = element("input", { id, type: "number", step: "any" });
    // Some ways of clearing a field only say that it has changed.
    for (const event of ["input", "change"]) made.addEventListener(event, () => this.update());
    return made;
  }

  // Values are compared with texts, and nobody said which there are.
  isText(j) {
    const parts = (condition) => (condition.conditions || [condition]).flatMap((part) =>
      (part === condition ? [part] : parts(part)));
    return this.rules.rules.some((rule) => rule.if.flatMap(parts).some((condition) =>
      condition.type === "one_of" && condition.feature === j &&
      condition.values.some((value) => typeof value === "string")));
  }

  rangeText(j) {
    const domain = this.rules.domain;
    if (!domain || this.categories(j)) return "";
    const lower = domain.lower[j], upper = domain.upper[j];
    // Some extractors widen the range by a hair: 0 is then what is meant.
    const shown = (bound) => shortNumber(Math.abs(bound) < 1e-6 * (upper - lower) ? 0 : bound);
    return `${shown(lower)} to ${shown(upper)}`;
  }

  middle() {
    const domain = this.rules.domain;
    return this.rules.names.map((_, j) => {
      const known = this.categories(j);
      if (known) return known[0];
      return domain ? Number(((domain.lower[j] + domain.upper[j]) / 2).toPrecision(4)) : 0;
    });
  }

  fill(row) {
    for (const [j, input] of this.inputs) {
      const known = this.categories(j), value = row[j];
      if (isMissing(value)) input.value = "";
      else if (known) {
        const at = known.findIndex((label) => sameValue(label, value));
        input.value = at < 0 ? "" : String(at);
      } else input.value = String(value);
    }
    this.update();
  }

  // The row as typed; null where a value is no number.
  read() {
    const row = new Array(this.rules.names.length).fill(null);
    for (const [j, input] of this.inputs) {
      const bad = input.validity && input.validity.badInput;
      input.setAttribute("aria-invalid", String(Boolean(bad)));
      if (bad) return null;
      if (input.value === "") continue;
      const known = this.categories(j);
      row[j] = known ? known[Number(input.value)] : input.type === "text" ? input.value
        : Number(input.value);
    }
    return row;
  }

  update() {
    const row = this.read(), box = byId("prediction");
    if (row === null) {
      box.replaceChildren(element("p", { text: "One of the values is not a number." }));
      return;
    }
    this.explanation = explainRow(this.rules, row);
    box.replaceChildren(...this.tell(this.explanation));
  }

  tell(explained) {
    const { rules } = this, { prediction, held, reason } = explained;
    const number = `rule ${prediction.rule + 1}`;
    const why = {
      first: `by ${number}, the first that holds`, purest: `by ${number}, the purest that holds`,
      vote: "by the vote of all rules that hold",
      nearest: `by ${number}, the nearest, since no rule holds`,
      fallback: prediction.predicted
        ? `by the fallback, since ${held.length ? "the weights leave no mean" : "no rule holds"}`
        : "since no rule holds and there is no fallback",
    }[reason];
    const parts = [element("p", { class: "verdict" },
      element("strong", { text: `Prediction: ${rules.says(prediction)}` }), `, ${why}.`)];
    if (prediction.sums) {
      const sums = rules.view.class_texts.map((text, k) => `${text} ${shortNumber(prediction.sums[k])}`);
      parts.push(element("p", { text: `Sums: ${sums.join(", ")}` }));
    }
    if (explained.conditions.length) {
      const texts = rules.view.rules[prediction.rule].conditions;
      parts.push(element("p", { text: `Conditions of ${number}:` }),
        this.conditionList(explained.conditions, texts));
    }
    const others = held.filter((i) => i !== prediction.rule);
    if (others.length) {
      const listed = others.slice(0, 20).map((i) => i + 1).join(", ");
      parts.push(element("p", {
        text: `Also ${others.length === 1 ? "holds rule" : "hold rules"} ${listed}` +
          (others.length > 20 ? ` and ${others.length - 20} more` : "") + "." }));
    }
    parts.push(...this.tellChange(explained));
    return parts;
  }

  conditionList(checked, texts) {
    return element("ul", { class: "conditions" }, ...checked.map((condition, at) =>
      element("li", { class: condition.holds ? "holds" : "fails" },
        `${condition.holds ? "✓" : "✗"} ${texts[at].text}: ${condition.holds ? "holds" : "fails"}`,
        ...(condition.parts.length ? [this.conditionList(condition.parts, texts[at].parts)] : []))));
  }

  tellChange({ prediction, counterfactual }) {
    if (!prediction.predicted) return [];
    if (!counterfactual) {
      return [element("p", { text: "No change was found that gets another prediction." })];
    }
    const by = counterfactual.rule < 0 ? "" : `, by rule ${counterfactual.rule + 1}`;
    const changes = counterfactual.changes.map(({ feature, before, after }) => element("li", {},
      element("strong", { text: this.rules.names[feature] }),
      ` were ${fullValue(after)} instead of ${fullValue(before)}`));
    return [
      element("p", { text: `Nearest other prediction: ${this.rules.says(counterfactual.prediction)}${by}, if` }),
      element("ul", {}, ...changes),
    ];
  }
}

let tryRow = null;

function showExports(view) {
  byId("export-list").replaceChildren(...view.exports.map(({ name, text, error }) => {
    if (text === null) {
      return element("details", {}, element("summary", { text: name }),
        element("p", { class: "note", text: error }));
    }
    const said = element("span", { role: "status", class: "copied" });
    const copy = element("button", {
      type: "button", class: "copy", "data-export": name, text: `Copy ${name}`,
      onclick: async () => {
        const done = await copyText(text);
        said.textContent = done ? "Copied." : "The browser did not let the page copy.";
      },
    });
    return element("details", {}, element("summary", { text: name }),
      element("p", { class: "buttons no-print" }, copy, said),
      element("pre", { tabindex: "0", "aria-label": `${name} of the rules` },
        element("code", { text })));
  }));
}
