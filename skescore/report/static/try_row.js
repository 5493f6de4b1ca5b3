// A form for a row, and the explanation of its prediction.
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
      byId("row-form").replaceChildren(element("p", { text: "The rules use no features." }));
      byId("next-row").hidden = true;
    }
    this.fill(rows && rows.numbers.length ? sampleRow(rules, rows, 0) : this.middle());
  }

  categories(j) {
    const domain = this.rules.domain;
    const pair = domain && (domain.categories || []).find(([feature]) => feature === j);
    return pair ? pair[1] : null;
  }

  input(j) {
    const categories = this.categories(j), id = `value-${j}`;
    let field;
    if (categories) {
      field = element("select", { id }, element("option", { value: "", text: "(missing)" }),
        ...categories.map((value, k) => element("option", { value: String(k), text: String(value) })));
    } else if (this.isText(j)) field = element("input", { id, type: "text" });
    else field = element("input", { id, type: "number", step: "any" });
    // Some ways of clearing a field only send a change event.
    for (const event of ["input", "change"]) field.addEventListener(event, () => this.update());
    return field;
  }

  // Returns whether rules compare a column with texts, without categories in the domain.
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
    // Some extractors widen the range slightly, so that 0 becomes a tiny number.
    const shown = (bound) => shortNumber(Math.abs(bound) < 1e-6 * (upper - lower) ? 0 : bound);
    return `${shown(lower)} to ${shown(upper)}`;
  }

  middle() {
    const domain = this.rules.domain;
    return this.rules.names.map((_, j) => {
      const categories = this.categories(j);
      if (categories) return categories[0];
      return domain ? Number(((domain.lower[j] + domain.upper[j]) / 2).toPrecision(4)) : 0;
    });
  }

  fill(row) {
    for (const [j, input] of this.inputs) {
      const categories = this.categories(j), value = row[j];
      if (isMissing(value)) input.value = "";
      else if (categories) {
        const at = categories.findIndex((label) => sameValue(label, value));
        input.value = at < 0 ? "" : String(at);
      } else input.value = String(value);
    }
    this.update();
  }

  // Returns the entered row; null if a value is not a number.
  read() {
    const row = new Array(this.rules.names.length).fill(null);
    for (const [j, input] of this.inputs) {
      const bad = input.validity && input.validity.badInput;
      input.setAttribute("aria-invalid", String(Boolean(bad)));
      if (bad) return null;
      if (input.value === "") continue;
      const categories = this.categories(j);
      row[j] = categories ? categories[Number(input.value)] : input.type === "text" ? input.value
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
    box.replaceChildren(...this.describeExplanation(this.explanation));
  }

  describeExplanation(explained) {
    const { rules } = this, { prediction, held, reason } = explained;
    const number = `rule ${prediction.rule + 1}`;
    const why = {
      first: `by ${number}, the first that holds`, purest: `by ${number}, the purest that holds`,
      vote: "by the vote of all rules that hold",
      nearest: `by ${number}, the nearest, because no rule holds`,
      fallback: prediction.predicted
        ? `by the fallback, because ${held.length ? "the weights add up to 0 or less" : "no rule holds"}`
        : "because no rule holds and there is no fallback",
    }[reason];
    const parts = [element("p", { class: "verdict" },
      element("strong", { text: `Prediction: ${rules.predictionText(prediction)}` }), `, ${why}.`)];
    parts.push(...rowPicture(rules, explained, this.read()));
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
        text: `${others.length === 1 ? "Rule" : "Rules"} ${listed}${others.length > 20 ? ` and ${others.length - 20} more` : ""} ` +
          `also ${others.length === 1 ? "holds" : "hold"}.` }));
    }
    parts.push(...this.describeChange(explained));
    return parts;
  }

  conditionList(checked, texts) {
    return element("ul", { class: "conditions" }, ...checked.map((condition, at) =>
      element("li", { class: condition.holds ? "holds" : "fails" },
        `${condition.holds ? "✓" : "✗"} ${texts[at].text}: ${condition.holds ? "holds" : "fails"}`,
        ...(condition.parts.length ? [this.conditionList(condition.parts, texts[at].parts)] : []))));
  }

  describeChange({ prediction, counterfactual }) {
    if (!prediction.predicted) return [];
    if (!counterfactual) {
      return [element("p", { text: "No change was found that leads to another prediction." })];
    }
    const by = counterfactual.rule < 0 ? "" : `, by rule ${counterfactual.rule + 1}`;
    const changes = counterfactual.changes.map(({ feature, before, after }) => element("li", {},
      element("strong", { text: this.rules.names[feature] }),
      ` were ${fullValue(after)} instead of ${fullValue(before)}`));
    return [
      element("p", { text: `Nearest other prediction: ${this.rules.predictionText(counterfactual.prediction)}${by}, if` }),
      element("ul", {}, ...changes),
    ];
  }
}

let tryRow = null;
