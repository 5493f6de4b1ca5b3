// Rules as cards: each rule in words, how often it is right, and its rows and measures on demand;
// then the exports of the rules.

// Further cards are shown on demand.
const N_SHOWN_CARDS = 12;
const N_OTHER_COLUMNS = 3;

const VOTES = "All rules that hold predict together.";

function predictionHint(rules) {
  if (rules.rules.length < 2) return "";
  if (rules.voting) return VOTES;
  if (rules.set.ordered) return "Read from the top: the first rule that holds predicts.";
  return rules.set.disjoint ? "No two rules hold for the same row."
    : "If several rules hold, the one that is right most often predicts.";
}

// States what the counts of the cards compare with, and on which rows.
function countedHint(content, rules) {
  const { view } = rules;
  if (!view.quality) return "";
  const agrees = view.rules.some((rule) => typeof rule.agreement === "number");
  return `${rules.regression ? "Counts" : "Right and wrong"}: compared with ${rules.target || "the target"} in ` +
    `${plural(view.total, "row")}${content.kind === "tune" ? ", from which the rules were extracted" : ""}.` +
    (agrees && !rules.regression ? ` Agreement: with the model, on the ${content.kind === "tune" ? "same" : "training"} rows` +
      `${view.rules.some((rule) => typeof rule.points === "number") ? " and generated rows" : ""}.` : "");
}

function showCards(list, rules, rows, { details = true } = {}) {
  const cards = rules.view.rules.map((_, i) => ruleCard(rules, rows, i, details));
  const last = otherwiseCard(rules, rows);
  if (last) cards.push(last);
  if (!cards.length) cards.push(element("li", { class: "card", text: "There are no rules." }));
  if (cards.length <= N_SHOWN_CARDS + 2) {
    list.replaceChildren(...cards);
    return;
  }
  const late = cards.slice(N_SHOWN_CARDS);
  for (const card of late) card.classList.add("late");
  const more = element("li", { class: "more no-print" }, element("button", {
    type: "button", text: `Show all ${rules.view.rules.length} rules`,
    onclick: () => {
      for (const card of late) card.classList.remove("late");
      more.remove();
      late[0].querySelector("summary, .premise").focus();
    },
  }));
  list.replaceChildren(...cards.slice(0, N_SHOWN_CARDS), more, ...late);
}

// Returns a condition in words, with the name of its column in bold.
function conditionWords(rules, rule, at) {
  const text = rule.words[at];
  // A condition with "or" is in parentheses if the rule has further conditions.
  for (const open of ["", "("]) {
    const name = rule.used.map((j) => rules.names[j])
      .filter((known) => text.startsWith(`${open}${known} is `))[0];
    if (name) return [open, element("b", { text: name }), text.slice(open.length + name.length)];
  }
  return [text];
}

function premise(rules, i) {
  const rule = rules.view.rules[i], later = rules.set.ordered && i > 0;
  if (!rule.words.length) {
    return element("p", { class: "premise" },
      element("span", { class: "word", text: later ? "Otherwise" : "Always" }));
  }
  // Commas separate conditions that contain "and", such as "above 1 and at most 2".
  const apart = rule.words.length > 1 && rule.words.some((text) => text.includes(" and "));
  const parts = rule.words.flatMap((_, at) => [
    element("span", { class: "word", text: at ? "and" : later ? "Else if" : "If" }), " ",
    element("span", { class: "condition" }, ...conditionWords(rules, rule, at)),
    apart && at + 1 < rule.words.length ? ", " : " ",
  ]);
  return element("p", { class: "premise" }, ...parts);
}

// Counts the rows that a rule predicts, and those that it predicts correctly.
function countRows(rules, i) {
  const { view } = rules, report = view.report;
  const decided = view.assigned ? view.assigned[i] : view.holds ? view.holds[i] : null;
  if (decided === null) return null;
  const counted = report && (view.assigned === undefined || view.assigned === null ||
    view.by_assigned || rules.set.disjoint);
  return { rows: decided, total: view.total,
           right: counted && !rules.regression && decided ? report.p[i] : null };
}

function recordText(rules, i) {
  const found = countRows(rules, i);
  if (!found) return rules.view.rules[i].seen;
  const verb = rules.voting ? "covers" : "predicts";
  const rows = `${verb} ${found.rows} of ${plural(found.total, "row")}`;
  if (found.right === null) return errorText(rules, i, rows);
  const wrong = found.rows - found.right, { agreement, weighted, points } = rules.view.rules[i];
  const counted = `${rows}, ${wrong <= 0 ? (found.rows === 1 ? "right" : "all right") : `${wrong} wrong`}`;
  return typeof agreement !== "number" || weighted ? counted
    : `${counted} · ${percentText(100 * agreement)} %${points === null ? "" : ` of ${shortNumber(points)} queried rows`} agree with the model`;
}

// Adds the mean error of a regression rule, against the data and the model.
function errorText(rules, i, rows) {
  const byRule = rules.view.by_rule && rules.view.by_rule[i], errors = [];
  if (!rules.regression || rules.voting || !byRule || !byRule.rows) return rows;
  if (typeof byRule.error === "number") errors.push(`${shortNumber(byRule.error)} (data)`);
  const { model_error: modelError, weighted } = rules.view.rules[i];
  if (typeof modelError === "number" && !weighted) errors.push(`${shortNumber(modelError)} (model)`);
  return errors.length ? `${rows}, mean error ${errors.join(", ")}` : rows;
}

function outcome(rules, i) {
  const rule = rules.view.rules[i];
  const kind = rules.regression ? "" : ` class-${rules.codes[i] % 8}`;
  return element("p", { class: `outcome${kind}` },
    element("span", { class: "arrow", "aria-hidden": "true", text: "→" }),
    element("span", { class: "unseen", text: "then" }), " ",
    ...(rules.target ? [element("small", { text: rules.target }), " "] : []),
    element("strong", { text: rule.output }),
    rules.voting ? element("small", { text: ` weight ${rule.weight}` }) : "");
}

function ruleCard(rules, rows, i, details) {
  const found = countRows(rules, i);
  const card = element("li", { class: "card", id: details ? `rule-${i + 1}` : null },
    element("span", { class: "number-sign", "aria-hidden": "true", text: String(i + 1) }),
    element("div", { class: rules.view.rules[i].output.length > 30 ? "says long" : "says" }, premise(rules, i), outcome(rules, i)));
  const line = element("p", { class: "record" });
  if (found && found.total) {
    const right = found.right === null ? found.rows : found.right;
    const bar = element("span", { class: "meter", "aria-hidden": "true" });
    bar.append(element("span", { class: "meter-right" }), element("span", { class: "meter-wrong" }));
    bar.children[0].style.width = `${100 * right / found.total}%`;
    bar.children[1].style.width = `${100 * (found.rows - right) / found.total}%`;
    line.append(bar);
  }
  line.append(recordText(rules, i));
  card.append(line);
  const { weighted, seen } = rules.view.rules[i];
  // Figures of weighted rows are on a line of their own.
  if (found && weighted && seen) {
    card.append(element("p", { class: "record weighted-record", text: `with weights: ${seen}` }));
  }
  if (details && rules.view.holds) {
    const box = element("div", { class: "rule-more" });
    const open = element("details", { class: "rule-details no-print" },
      element("summary", {}, rows ? "Rows and measures" : "Measures",
        element("span", { class: "unseen", text: ` of rule ${i + 1}` })), box);
    // Filled when first opened, since there may be many rules.
    open.addEventListener("toggle", () => {
      if (open.open && !box.childElementCount) box.append(...ruleMeasures(rules, i), ...ruleRows(rules, rows, i));
    });
    card.append(open);
  }
  return card;
}

// Counts rows without a rule that are predicted correctly; null where rules may share rows.
function rightWithoutRule(rules) {
  const { view } = rules, counts = view.rules.map((_, i) => countRows(rules, i));
  if (!view.quality || rules.regression || rules.voting || rules.boxes) return null;
  if (counts.some((one) => one.rows && one.right === null)) return null;
  return view.quality.right - counts.reduce((sum, one) => sum + (one.right || 0), 0);
}

function otherwiseCard(rules, rows) {
  const { view } = rules;
  if (!view.otherwise) return null;
  let some = "";
  if (view.uncovered) {
    const right = rightWithoutRule(rules), wrong = view.uncovered - right;
    some = `predicts ${view.uncovered} of ${plural(view.total, "row")}` +
      (right === null ? "" : wrong ? `, ${wrong} wrong` : ", all right");
  } else if (view.uncovered !== undefined) some = "applies to none of these rows";
  return element("li", { class: "card otherwise" },
    element("span", { class: "number-sign", "aria-hidden": "true", text: "–" }),
    element("p", { class: "premise", text: view.otherwise }),
    element("p", { class: "record", text: some }));
}

// Lists the measures of a rule in words, followed by their names.
function ruleMeasures(rules, i) {
  const { view } = rules, { report } = view, facts = [];
  if (report) {
    const of = report.p[i] + report.n[i];
    facts.push(
      ["Right", `${report.p[i]} of ${of}${rules.regression ? " near its value" : ""}`,
       `precision ${tableNumber(report.precision[i])}`],
      [rules.regression ? "Share of the rows near its value" : "Share of its class",
       `${percentText(100 * report.coverage[i])} of 100`, `coverage ${tableNumber(report.coverage[i])}`],
      ["Could be chance", report.significant[i] ? "no" : "yes, cannot be ruled out",
       `corrected p-value ${tableNumber(report.fdr_p_value[i])}`],
      ["Combined measure", tableNumber(report.c2[i]), "C2, at most 1"]);
    if (!rules.set.ordered) {
      facts.push(["Covered by no other rule", plural(report.unique_rows[i], "row"),
                  `overlap ${tableNumber(report.overlap[i])}`]);
    }
  }
  facts.push(["Covers", plural(view.holds[i], "row"), rules.set.ordered && i
    ? "including rows of earlier rules" : ""]);
  const list = element("dl", { class: "figures" }, ...facts.map(([name, text, more]) =>
    element("div", {}, element("dt", { text: name }), element("dd", {}, text, " ",
      element("small", { text: more })))));
  return view.report_error
    ? [list, element("p", { class: "hint", text: `No measures of single rules: ${view.report_error}` })]
    : [list];
}

function sampleRow(rules, rows, k) {
  const row = new Array(rules.names.length).fill(null);
  rows.features.forEach((feature, at) => { row[feature] = rows.columns[at][k]; });
  return row;
}

// Makes a table of sample rows that a rule holds for, with the columns of its conditions first.
function ruleRows(rules, rows, i) {
  if (!rows) return [];
  const own = rules.view.rules[i].used.filter((j) => rows.features.includes(j));
  const others = rows.features.filter((j) => !own.includes(j)).slice(0, N_OTHER_COLUMNS);
  const all = rows.numbers.map((_, k) => k);
  const held = all.filter((k) => rules.ruleHolds(i, sampleRow(rules, rows, k)));
  // In an ordered list, a rule decides the rows that no earlier rule covers.
  const found = rules.voting ? held
    : held.filter((k) => rules.predict(sampleRow(rules, rows, k)).rule === i);
  const total = rules.voting ? rules.view.holds[i] : rules.view.assigned[i];
  const head = (text, kind = "number") => element("th", { scope: "col", text, class: kind });
  const cell = (label, text, kind = "number") => element("td", { class: kind, "data-label": label, text });
  const values = (features, k, kind) => features.map((j) =>
    cell(rules.names[j], fullValue(rows.columns[rows.features.indexOf(j)][k]), kind));
  return [element("div", { class: "scroll", role: "region", tabindex: "0",
                           "aria-label": `Rows of rule ${i + 1}, can be scrolled` },
    element("table", { class: "stacked rule-rows" },
      caption(`${found.length} of the ${plural(total, "row")} that rule ${i + 1} ` +
        `${rules.voting ? "covers" : "predicts"}${others.length ? "; columns of the rule first" : ""}`),
      element("thead", {}, element("tr", {}, head("Row"), ...own.map((j) => head(rules.names[j])),
        head(rows.target), head("Rules predict"), element("td", {}), ...others.map((j) => head(rules.names[j])))),
      element("tbody", {}, ...found.map((k) => {
        const said = rules.predictionText(rules.predict(sampleRow(rules, rows, k)));
        const truth = fullValue(rows.targets[k]);
        const wrong = !rules.regression && said !== truth;
        return element("tr", { class: wrong ? "wrong" : null },
          element("th", { scope: "row", class: "number", text: String(rows.numbers[k]) }),
          ...values(own, k, "number own"), cell(rows.target, truth),
          cell("Rules predict", wrong ? `${said} ✗` : said),
          element("td", {}, element("button", {
            type: "button", class: "choose", text: "try", "aria-label": `Try row ${rows.numbers[k]}`,
            onclick: () => {
              tryRow.fill(sampleRow(rules, rows, k));
              byId("try").scrollIntoView();
              byId("try").focus({ preventScroll: true });
            },
          })),
          ...values(others, k, "number"));
      }))))];
}

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
        said.textContent = done ? "Copied." : "The browser did not allow copying.";
      },
    });
    return element("details", {}, element("summary", { text: name }),
      element("p", { class: "buttons no-print" }, copy, said),
      element("pre", { tabindex: "0", "aria-label": `${name} of the rules` },
        element("code", { text })));
  }));
}
