// The editor of the rules; figures are updated after each edit, from rows in the page.

const SIGNS = { lower: [">", "≥"], upper: ["<", "≤"] };

class RuleEditor {
  constructor(content, view) {
    this.data = content.editing;
    this.settings = content.start;
    this.view = view;
    this.log = new EditLog(view.set, this.data.about);
    this.texts = this.conditionTexts(view);
    this.rows = this.data.y.map((_, k) => view.set.feature_names.map((name, j) => {
      const column = this.data.columns[j];
      return column ? column[k] : null;
    }));
    this.first = this.measure(this.log.set);
    this.onEdit = () => {};
    this.fillForbid();
    byId("edit-forbid-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.apply({ action: "forbid", feature: byId("edit-forbid").value });
    });
    byId("edit-undo").addEventListener("click", () => this.apply({ action: "undo" }));
    byId("edit-redo").addEventListener("click", () => this.apply({ action: "redo" }));
    byId("edit-rules-file").addEventListener("click", () =>
      saveFile("rules.json", JSON.stringify(this.log.set, null, 2)));
    byId("edit-log-file").addEventListener("click", () => saveFile("edit-log.json", this.log.toJson()));
    byId("edit").hidden = false;
    this.show();
  }

  // Returns the texts of the original conditions by their JSON.
  conditionTexts(view) {
    const texts = new Map();
    view.set.rules.forEach((rule, i) => rule.if.forEach((condition, k) =>
      texts.set(canonicalJson(copyOf(condition)), view.rules[i].conditions[k].text)));
    return texts;
  }

  fillForbid() {
    const { feature_names: names } = this.view.set;
    byId("edit-forbid").replaceChildren(...this.view.used.map((j) =>
      element("option", { value: names[j], text: names[j] })));
  }

  // Returns a rule set of the log as rules that predict.
  rulesOf(set) {
    const classes = set.classes, truths = this.data.truth;
    const truth = (c) => {
      if (c.type === "at_least") return c.conditions.map(truth);
      if (c.type === "linear") return truths.linear;
      return truths[c.type][(c.negated ? 2 : 0) + (c.missing ? 1 : 0)];
    };
    return new Rules({
      ...this.view, set: copyOf(set), truth: set.rules.map((rule) => rule.if.map(truth)),
      codes: classes && set.rules.map((rule) => classes.findIndex((label) => label === rule.then)),
    });
  }

  // Returns the figures of rules on the rows of the page.
  measure(set) {
    const rules = this.rulesOf(set), { y, model } = this.data;
    const predicted = this.rows.map((row) => {
      const prediction = rules.predict(row);
      return { code: rules.regression ? prediction.value : prediction.code, has: prediction.predicted,
               byRules: prediction.byRules && rules.rulesThatHold(row).length > 0 };
    });
    const judge = rules.regression ? meanError : shareRight;
    const figures = { rules: set.rules.length, correctness: judge(predicted, y) };
    if (model) figures.fidelity = judge(predicted, model);
    Object.assign(figures, this.scores(set, predicted, rules.regression));
    const silent = predicted.filter((one) => !one.has).length;
    return { figures, predicted, silent };
  }

  // Returns ICE with the completeness by rows, and FiRe.
  scores(set, predicted, regression) {
    const { y } = this.data, n = y.length;
    const byRules = predicted.map((one) => one.byRules);
    const covered = byRules.filter(Boolean).length;
    const performance = regression ? rSquared(predicted, y, byRules) : weightedF1(predicted, y, byRules);
    const fallback = set.fallback ? Number(set.fallback.output) : mean(y);
    const loss = regression
      ? mean(y.map((value, k) => Math.abs(value - (byRules[k] ? predicted[k].code : fallback))))
      : 1 - y.filter((value, k) => byRules[k] && predicted[k].code === value).length / n;
    const folds = { size: [set.rules.length], completeness_instances: [covered / n],
                    performance: [performance], loss: [loss] };
    const settings = { ...this.settings, completeness: "instances" };
    return Object.fromEntries(["ice", "fire"].map((score) =>
      [score, foldScore({ ...settings, score }, folds, 0)]));
  }

  apply(edit) {
    const message = byId("edit-message");
    try {
      this.log.append(edit, {
        author: byId("edit-author").value.trim(), reason: byId("edit-reason").value.trim(),
        time: new Date().toISOString().slice(0, 19) + "+00:00", lines: (set) => this.lines(set),
      });
    } catch (error) {
      message.textContent = error.message;
      this.show();
      return;
    }
    message.textContent = "";
    this.show();
    this.onEdit();
  }

  // Shows the rules after the steps of a log from Python.
  restore(steps, base) {
    this.log.restore(steps, base);
    this.show();
  }

  // Returns the number and text of each rule, as logs written by Python.
  lines(set) {
    return set.rules.map((rule, i) => {
      const premise = rule.if.map((c) => this.conditionText(set, c)).join(" AND ");
      return [i + 1, `${premise ? `IF ${premise} THEN` : "ALWAYS"} ${this.outputText(rule.then)}`];
    });
  }

  outputText(output) {
    if (output === null || typeof output !== "object") return String(output);
    const terms = output.terms.map(([j, c]) => `${c}·${this.view.set.feature_names[j]}`);
    return [output.intercept, ...terms].join(" + ");
  }

  conditionText(set, condition) {
    const text = this.texts.get(canonicalJson(condition));
    const name = set.feature_names[condition.feature];
    if (!text && condition.type === "one_of") {
      const sign = condition.values.length === 1 ? ["=", "≠"] : ["in", "not in"];
      const values = condition.values.length === 1 ? condition.values[0] : `{${condition.values.join(", ")}}`;
      return `${name} ${sign[Number(Boolean(condition.negated))]} ${values}${condition.missing ? " or missing" : ""}`;
    }
    if (text || condition.type !== "interval") return text || condition.type;
    const parts = Object.keys(SIGNS).filter((side) => condition[side] !== undefined).map((side) =>
      `${name} ${SIGNS[side][Number(condition[`${side}_closed`])]} ${condition[side]}`);
    return parts.join(" and ") + (condition.missing ? " or missing" : "");
  }

  // Draws the rules and figures; the focus stays on the field with the same label.
  show() {
    const { set } = this.log;
    const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
    const now = this.measure(set);
    this.now = now;
    byId("edit-rules").replaceChildren(...set.rules.map((rule, i) => this.ruleItem(set, rule, i)));
    if (focused) {
      const again = [...byId("edit-rules").querySelectorAll("[aria-label]")]
        .find((field) => field.getAttribute("aria-label") === focused);
      if (again) again.focus();
    }
    byId("edit-undo").disabled = !this.log.past.length;
    byId("edit-redo").disabled = !this.log.future.length;
    byId("edit-rules-file").disabled = byId("edit-log-file").disabled = !this.log.steps.length;
    const { changed, better, worse } = this.changes(now);
    byId("edit-figures").replaceChildren(...this.figureRows(now, changed > 0));
    const order = !set.disjoint && this.log.header.rules.disjoint
      ? " The rules overlap now, so the first rule that holds predicts." : "";
    const silent = now.silent ? ` Without a rule and a prediction: ${plural(now.silent, "row")}.` : "";
    byId("edit-changes").textContent = (changed
      ? `${plural(changed, "row")} of ${this.rows.length} with another prediction: better for ${better}, worse for ${worse}.`
      : "No prediction changes.") + order + silent;
    byId("edit-steps").replaceChildren(...this.log.steps.map((step) => element("li", {
      text: [describeStep(step.edit), step.author && `by ${step.author}`, step.reason && `because ${step.reason}`]
        .filter(Boolean).join(" ") })));
  }

  changes(now) {
    const { y } = this.data, first = this.first.predicted;
    let changed = 0, better = 0, worse = 0;
    const regression = this.view.set.task === "regression";
    now.predicted.forEach((one, k) => {
      if (one.has === first[k].has && (one.code === first[k].code || (Number.isNaN(one.code) && Number.isNaN(first[k].code)))) return;
      changed += 1;
      const [before, after] = regression ? [first[k], one].map((p) => -Math.abs(p.code - y[k]))
        : [first[k], one].map((p) => Number(p.has && p.code === y[k]));
      if (after > before) better += 1;
      if (after < before) worse += 1;
    });
    return { changed, better, worse };
  }

  // Returns the interval of the change of correctness or fidelity; null for other figures.
  intervalOf(name, now) {
    const reference = { correctness: this.data.y, fidelity: this.data.model }[name];
    if (!reference) return null;
    const [before, after] = [this.first.predicted, now.predicted];
    return this.view.set.task === "regression"
      ? intervalOfMeans(absoluteErrors(before, reference), absoluteErrors(after, reference), this.data.interval)
      : intervalOfShares(areRight(before, reference), areRight(after, reference), this.data.interval);
  }

  figureRows(now, isChanged) {
    const regression = this.view.set.task === "regression";
    const names = {
      correctness: regression ? "mean error (data)" : "right (data)",
      fidelity: regression ? "mean error (model)" : "agree with the model",
      rules: "rules", ice: "ICE (completeness by rows)", fire: "FiRe",
    };
    const share = (name) => !regression && (name === "correctness" || name === "fidelity");
    const text = (name, value) => (share(name) ? `${(100 * value).toFixed(1)} %`
      : name === "rules" ? String(value) : tableNumber(value, 4));
    return Object.keys(names).filter((name) => name in now.figures).map((name) => {
      const [before, after] = [this.first.figures[name], now.figures[name]];
      const change = after - before, sign = change > 0 ? "+" : change < 0 ? "−" : "";
      const size = Math.abs(change), interval = isChanged ? this.intervalOf(name, now) : null;
      const signed = (end) => (end > 0 ? "+" : end < 0 ? "−" : "") + text(name, Math.abs(end));
      return element("tr", { "data-figure": name }, element("th", { scope: "row", class: "text", text: names[name] }),
        element("td", { class: "number", text: text(name, before) }),
        element("td", { class: "number", text: text(name, after) }),
        element("td", { class: "number", text: change === 0 ? "0" : sign + text(name, size) }),
        element("td", { class: "number", text: interval ? `${signed(interval[0])} to ${signed(interval[1])}` : "" }));
    });
  }

  ruleItem(set, rule, i) {
    const number = i + 1, parts = [];
    rule.if.forEach((condition, k) => {
      parts.push(element("span", { class: "word", text: k ? "and" : set.ordered && i ? "Else if" : "If" }));
      parts.push(condition.type === "interval" ? this.intervalFields(set, condition, number)
        : element("span", { text: this.conditionText(set, condition) }));
    });
    if (!rule.if.length) parts.push(element("span", { class: "word", text: i && set.ordered ? "Otherwise" : "Always" }));
    parts.push(element("span", { class: "word", text: "→" }), this.outputField(set, rule, number));
    return element("li", { class: "edit-rule" }, element("div", { class: "edit-premise" }, ...parts,
      element("button", { type: "button", text: "drop", class: "choose", "aria-label": `Drop rule ${number}`,
                          disabled: set.rules.length === 1,
                          onclick: () => this.apply({ action: "drop", number }) })));
  }

  intervalFields(set, condition, number) {
    const feature = set.feature_names[condition.feature];
    const fields = Object.keys(SIGNS).filter((side) => condition[side] !== undefined).flatMap((side, k) => {
      const sign = SIGNS[side][Number(condition[`${side}_closed`])];
      const input = element("input", {
        type: "number", step: "any", value: String(condition[side]), "data-side": side,
        "aria-label": `Rule ${number}: ${feature} ${sign === ">" ? "above" : sign === "≥" ? "at least" : sign === "<" ? "below" : "at most"}`,
        onchange: (event) => {
          const value = event.target.valueAsNumber;
          if (Number.isFinite(value)) this.apply({ action: "set_bound", number, feature, [side]: value });
          else this.show();
        },
      });
      input.style.width = `${Math.max(6, input.value.length + 3)}ch`;
      return [k ? " and " : "", element("b", { text: feature }), ` ${sign} `, input];
    });
    return element("span", { class: "edit-condition" }, ...fields, condition.missing ? " or missing" : "");
  }

  outputField(set, rule, number) {
    const label = `Rule ${number}: prediction`;
    if (set.classes) {
      const select = element("select", {
        "aria-label": label,
        onchange: (event) => this.apply({ action: "set_output", number,
                                          output: set.classes[Number(event.target.value)] }),
      }, ...set.classes.map((_, k) => element("option", { value: String(k), text: this.view.class_texts[k] })));
      select.value = String(set.classes.findIndex((one) => one === rule.then));
      return select;
    }
    if (typeof rule.then === "object") return element("strong", { text: this.outputText(rule.then) });
    return element("input", {
      type: "number", step: "any", value: String(rule.then), "aria-label": label,
      onchange: (event) => {
        const value = event.target.valueAsNumber;
        if (Number.isFinite(value)) this.apply({ action: "set_output", number, output: value });
        else this.show();
      },
    });
  }
}

function describeStep(edit) {
  if (edit.action === "drop") return `drop rule ${edit.number}`;
  if (edit.action === "forbid") return `forbid ${edit.feature}`;
  if (edit.action === "set_output") return `set the output of rule ${edit.number} to ${edit.output}`;
  if (edit.action !== "set_bound") return edit.action.replaceAll("_", " ");
  const side = edit.lower === undefined ? "upper" : "lower";
  return `set the ${side} bound of ${edit.feature} in rule ${edit.number} to ${edit[side]}`;
}

function areRight(predicted, labels) {
  return labels.map((label, k) => predicted[k].has && predicted[k].code === label);
}

function shareRight(predicted, labels) {
  return areRight(predicted, labels).filter(Boolean).length / labels.length;
}

// Returns the absolute error of each row; rows without a prediction get the mean as theirs.
function absoluteErrors(predicted, numbers) {
  const middle = mean(numbers);
  return numbers.map((value, k) => {
    const has = predicted[k].has && !Number.isNaN(predicted[k].code);
    return Math.abs(value - (has ? predicted[k].code : middle));
  });
}

function meanError(predicted, numbers) {
  return mean(absoluteErrors(predicted, numbers));
}

// Returns the mean F1 of all classes, weighted by their rows, over the used rows.
function weightedF1(predicted, labels, used) {
  const counts = new Map();
  const count = (label, name) => {
    if (!counts.has(label)) counts.set(label, { rows: 0, said: 0, both: 0 });
    counts.get(label)[name] += 1;
  };
  labels.forEach((label, k) => {
    if (!used[k]) return;
    count(label, "rows");
    count(predicted[k].code, "said");
    if (predicted[k].code === label) count(label, "both");
  });
  let total = 0, rows = 0;
  for (const one of counts.values()) {
    rows += one.rows;
    total += one.rows * (one.rows + one.said ? (2 * one.both) / (one.rows + one.said) : 0);
  }
  return rows ? total / rows : NaN;
}

function rSquared(predicted, numbers, used) {
  const pairs = numbers.map((value, k) => [value, predicted[k].code]).filter((_, k) => used[k]);
  if (pairs.length < 2) return NaN;
  const middle = mean(pairs.map(([value]) => value));
  const sum = (terms) => terms.reduce((a, b) => a + b, 0);
  const around = sum(pairs.map(([value]) => (value - middle) ** 2));
  const errors = sum(pairs.map(([value, said]) => (value - said) ** 2));
  return around > 0 ? 1 - errors / around : errors > 0 ? 0 : 1;
}

function saveFile(name, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
                              download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
