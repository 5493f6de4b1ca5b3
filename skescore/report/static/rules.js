// Prediction by rule sets, as in skescore.rules. A row is a list of values by feature: a number, a text,
// a boolean, or null where it is missing.

function asNumber(value) {
  if (value === null || value === undefined) return NaN;
  if (typeof value === "string") return value.trim() === "" ? NaN : Number(value);
  return Number(value);
}

// Numbers and booleans compare as numbers, texts only with texts.
function sameValue(a, b) {
  if (typeof a === "string" || typeof b === "string") return a === b;
  return Number(a) === Number(b);
}

function within(value, bounds) {
  if (Number.isNaN(value)) return false;
  if (bounds.lower !== undefined &&
      !(bounds.lower_closed ? value >= bounds.lower : value > bounds.lower)) return false;
  return bounds.upper === undefined ||
    (bounds.upper_closed ? value <= bounds.upper : value < bounds.upper);
}

function isMissing(value) {
  return value === null || value === undefined || Number.isNaN(value);
}

// `truth` is the truth table of a condition, written by Python: for an observed value that passes the
// comparison, for one that fails it, and for a missing value.
function truthValue(truth, passes, missing) {
  return missing ? truth[2] : truth[passes ? 0 : 1];
}

function addTruth(conditions, truth) {
  conditions.forEach((condition, i) => {
    if (condition.type === "at_least") addTruth(condition.conditions, truth[i]);
    else condition.truth = truth[i];
  });
}

function conditionHolds(condition, row) {
  switch (condition.type) {
    case "missing":
      return truthValue(condition.truth, true, isMissing(row[condition.feature]));
    case "interval": {
      const value = asNumber(row[condition.feature]);
      return truthValue(condition.truth, within(value, condition), Number.isNaN(value));
    }
    case "one_of": {
      const value = row[condition.feature];
      const listed = condition.values.some((category) => sameValue(category, value));
      return truthValue(condition.truth, listed, isMissing(value));
    }
    case "at_least":
      return condition.conditions.filter((part) => conditionHolds(part, row)).length >= condition.m;
    case "linear": {
      const values = condition.terms.map(([feature]) => asNumber(row[feature]));
      const total = condition.terms.reduce((sum, [, coefficient], k) => sum + coefficient * values[k], 0);
      return truthValue(condition.truth, within(total, condition), values.some(Number.isNaN));
    }
    default:
      throw new Error("unknown condition " + condition.type);
  }
}

function evaluate(part, row) {
  if (typeof part !== "object" || part === null) return Number(part);
  let total = part.intercept;
  for (const [feature, coefficient] of part.terms) total += coefficient * asNumber(row[feature]);
  return total;
}

// Predictions of a rule set; `set` is what RuleSet.to_json writes, `truth` of the view
// holds the truth table of every condition.
class Rules {
  constructor(view, target = null) {
    this.view = view;
    this.target = target;
    this.set = view.set;
    this.rules = view.set.rules;
    this.rules.forEach((rule, i) => addTruth(rule.if, view.truth[i]));
    this.names = view.set.feature_names;
    this.classes = view.set.classes;
    this.regression = view.set.task === "regression";
    this.voting = view.set.voting || null;
    this.fallback = view.set.fallback;
    this.domain = view.set.domain;
    this.codes = view.codes;
    this.priority = this.assignmentOrder();
    this.boxes = this.fallback && this.fallback.policy === "nearest" ? this.boxesOfRules() : null;
  }

  // Unordered rules: the purest predicts, then the one with most rows, then the first.
  assignmentOrder() {
    const order = this.rules.map((_, i) => i);
    if (this.set.ordered || this.set.disjoint) return order;
    const purity = this.rules.map((rule, i) => {
      const counts = rule.statistics && rule.statistics.class_counts;
      const total = counts ? counts.reduce((a, b) => a + b, 0) : 0;
      if (!(total > 0)) return 0;
      return (this.regression ? Math.max(...counts) : counts[this.codes[i]]) / total;
    });
    const rows = this.rules.map((rule) => (rule.statistics ? rule.statistics.n_rows : 0));
    return order.sort((a, b) => purity[b] - purity[a] || rows[b] - rows[a] || a - b);
  }

  ruleHolds(i, row) {
    return this.rules[i].if.every((condition) => conditionHolds(condition, row));
  }

  // Returns the indices of all rules that hold, in order.
  rulesThatHold(row) {
    const found = [];
    for (let i = 0; i < this.rules.length; i++) if (this.ruleHolds(i, row)) found.push(i);
    return found;
  }

  // Index of the rule that a row is assigned to; -1 for the fallback or a vote.
  assign(row) {
    if (this.voting) return -1;
    for (const i of this.priority) if (this.ruleHolds(i, row)) return i;
    return this.boxes && this.rules.length ? this.nearestBox(row) : -1;
  }

  range(feature) {
    return this.domain ? this.domain.upper[feature] - this.domain.lower[feature] : 1;
  }

  boxesOfRules() {
    const bounded = new Set();
    const boxes = this.rules.map((rule) => {
      const box = new Map();
      for (const condition of rule.if) {
        if (condition.type === "interval") {
          box.set(condition.feature, condition);
          bounded.add(condition.feature);
        }
      }
      return box;
    });
    const used = [...bounded].sort((a, b) => a - b)
      .filter((j) => this.range(j) > 0 && Number.isFinite(this.range(j)));
    return { boxes, used };
  }

  nearestBox(row) {
    let best = 0, least = Infinity;
    this.boxes.boxes.forEach((box, i) => {
      // The distance between an observed and a missing value is the whole range.
      let total = this.rules[i].if.filter((condition) => condition.type === "missing" &&
        !condition.negated && !isMissing(row[condition.feature])).length;
      for (const j of this.boxes.used) {
        const bounds = box.get(j) || {};
        const low = bounds.lower === undefined ? -Infinity : bounds.lower;
        const high = bounds.upper === undefined ? Infinity : bounds.upper;
        const value = asNumber(row[j]);
        let gap = Math.max(low - value, value - high, 0) / this.range(j);
        if (Number.isNaN(gap)) gap = 0;
        total += gap * gap;
      }
      if (total < least) { best = i; least = total; }
    });
    return best;
  }

  // Returns the sums of votes per class.
  classSums(row, held) {
    const sums = new Array(this.classes.length).fill(0);
    for (const i of held) {
      const rule = this.rules[i];
      let weight = rule.weight === undefined ? 1 : evaluate(rule.weight, row);
      if (Number.isNaN(weight)) weight = 0;
      if (this.voting !== "probabilities") { sums[this.codes[i]] += weight; continue; }
      const probabilities = this.classProbabilities(i);
      for (let k = 0; k < sums.length; k++) sums[k] += weight * probabilities[k];
    }
    return sums;
  }

  classProbabilities(i) {
    const statistics = this.rules[i].statistics;
    const counts = statistics && statistics.class_counts;
    const total = counts ? counts.reduce((a, b) => a + b, 0) : 0;
    if (!(total > 0)) return this.classes.map((_, k) => (k === this.codes[i] ? 1 : 0));
    return counts.map((count) => count / total);
  }

  // Returns the joint prediction of the rules of a regression, and whether there is one.
  voteNumber(row, held) {
    let total = 0, weights = 0;
    for (const i of held) {
      const rule = this.rules[i], weight = rule.weight === undefined ? 1 : rule.weight;
      total += weight * evaluate(rule.then, row);
      weights += weight;
    }
    if (this.voting === "sum") return { value: total, predicted: held.length > 0 };
    const predicted = held.length > 0 && weights > 0;
    return { value: predicted ? total / weights : NaN, predicted };
  }

  // Returns the prediction and its rule: `code` is the class index (n_classes for an abstention), `value` a
  // regression's number; `predicted` is false where there is neither a rule nor a fallback.
  predict(row) {
    const rule = this.assign(row);
    const held = this.voting ? this.rulesThatHold(row) : null;
    if (this.regression) {
      if (this.voting) {
        const vote = this.voteNumber(row, held);
        if (vote.predicted) return { rule, value: vote.value, byRules: true, predicted: true };
      } else if (rule >= 0) {
        const value = evaluate(this.rules[rule].then, row);
        return { rule, value, byRules: true, predicted: true };
      }
      if (!this.fallback) return { rule, value: NaN, byRules: false, predicted: false };
      const value = this.fallback.policy === "abstain" ? NaN : Number(this.fallback.output);
      return { rule, value, byRules: false, predicted: true };
    }
    if (this.voting && held.length) {
      const sums = this.classSums(row, held);
      return { rule, code: sums.indexOf(Math.max(...sums)), sums, byRules: true, predicted: true };
    }
    if (rule >= 0) return { rule, code: this.codes[rule], byRules: true, predicted: true };
    if (!this.fallback) return { rule, code: -1, byRules: false, predicted: false };
    const code = this.fallback.policy === "abstain" ? this.classes.length
      : this.view.fallback_code;
    return { rule, code, byRules: false, predicted: true };
  }

  label(prediction) {
    if (this.regression) return prediction.value;
    return prediction.code === this.classes.length ? this.view.abstention : this.classes[prediction.code];
  }

  predictionText(prediction) {
    if (!prediction.predicted) return "no prediction";
    if (this.regression) return shortNumber(prediction.value);
    return prediction.code === this.classes.length ? String(this.view.abstention)
      : this.view.class_texts[prediction.code];
  }
}
