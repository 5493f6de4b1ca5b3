// Search for the nearest change of a row to another prediction, as in skescore.rules._explanation.

const MAX_PAIRS = 1 << 14;
const DISTANCE_BEYOND_CUT = 0.01;

function nextAbove(value) {
  if (!Number.isFinite(value)) return value === -Infinity ? -Number.MAX_VALUE : value;
  if (value === 0) return Number.MIN_VALUE;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  view.setBigUint64(0, value > 0 ? bits + 1n : bits - 1n);
  return view.getFloat64(0);
}

// Returns a number between low and high, near low and with few digits where possible.
function justAbove(low, high, reach) {
  const room = Math.min(reach, (high - low) / 2);
  if (room > 1e-15 && room < 1e15) {
    const unit = Math.ceil(-Math.log10(room));
    const power = Number("1e" + Math.abs(unit));
    const steps = Math.floor(unit > 0 ? low * power : low / power) + 1;
    const value = unit > 0 ? steps / power : steps * power;
    if (low < value && value <= low + 2 * room && value < high) return value;
  }
  return nextAbove(low);
}

// Returns the cuts except the start, and the nearest value of each interval that lacks the start.
function candidateValues(cuts, start, reach) {
  const places = cuts.filter((cut) => cut !== start);
  const ends = [-Infinity, ...cuts, Infinity];
  for (let k = 0; k + 1 < ends.length; k++) {
    const low = ends[k], high = ends[k + 1];
    let upwards;
    if (Number.isNaN(start)) upwards = Number.isFinite(low);
    else if (start <= low || start >= high) upwards = start <= low;
    else continue;
    const value = upwards ? justAbove(low, high, reach) : -justAbove(-high, -low, reach);
    if (low < value && value < high) places.push(value);
  }
  return places;
}

// Orders numbers by size, then texts by their code points.
function compareLabels(a, b) {
  const first = typeof a === "string", second = typeof b === "string";
  if (first !== second) return first - second;
  if (!first) return Number(a) - Number(b);
  const left = [...a], right = [...b];
  for (let k = 0; k < Math.min(left.length, right.length); k++) {
    const gap = left[k].codePointAt(0) - right[k].codePointAt(0);
    if (gap) return gap;
  }
  return left.length - right.length;
}

class CounterfactualSearch {
  constructor(rules, row) {
    this.rules = rules;
    this.cuts = new Map();
    this.lists = new Map();
    this.testedForMissing = new Set();
    for (const rule of rules.rules) rule.if.forEach((condition) => this.collectValues(condition));
    this.row = row.map((value) => (isMissing(value) ? null : value));
    const changeable = [...new Set([...this.cuts.keys(), ...this.lists.keys(), ...this.testedForMissing])];
    changeable.sort((a, b) => a - b);
    this.options = new Map(changeable.map((j) => [j, this.choices(j)]));
    this.base = this.status(new Map());
  }

  collectValues(condition) {
    const add = (map, values) => {
      if (!map.has(condition.feature)) map.set(condition.feature, new Set());
      for (const value of values) map.get(condition.feature).add(value);
    };
    if (condition.type === "at_least") condition.conditions.forEach((part) => this.collectValues(part));
    else if (condition.type === "interval") {
      add(this.cuts, [condition.lower, condition.upper].filter((bound) => bound !== undefined));
    } else if (condition.type === "one_of") add(this.lists, condition.values);
    else if (condition.type === "missing") this.testedForMissing.add(condition.feature);
  }

  // Returns the values of a feature that can change the prediction, by distance; the first is the value
  // of the row. A missing value may become observed, but an observed one does not become missing.
  choices(j) {
    const listed = this.lists.get(j) || new Set();
    const domain = this.rules.domain;
    if (!this.cuts.has(j)) {
      const now = this.row[j];
      const pair = domain && (domain.categories || []).find(([feature]) => feature === j);
      const known = [...new Set([...listed, ...(pair ? pair[1] : [])])]
        .filter((value) => now === null || !sameValue(value, now)).sort(compareLabels);
      if (!listed.size && !pair && now === null) {
        known.push(domain ? domain.lower[j] / 2 + domain.upper[j] / 2 : 0);
      }
      return { values: [now, ...known], costs: [0, ...known.map(() => 1)] };
    }
    const numbers = [...listed].filter((value) => typeof value !== "string").map(Number);
    const points = [...new Set([...this.cuts.get(j), ...numbers].map((v) => v + 0))];
    points.sort((a, b) => a - b);
    const scale = this.rules.range(j), start = asNumber(this.row[j]);
    if (scale === 0) return { values: [start], costs: [0] };
    const places = [start, ...candidateValues(points, start, DISTANCE_BEYOND_CUT * scale)];
    const costs = places.map((place) =>
      (Number.isNaN(start) ? 1 : Math.abs(place - start) / scale));
    costs[0] = 0;
    const order = places.map((_, k) => k).sort((a, b) => costs[a] - costs[b] || a - b)
      .filter((k) => Number.isFinite(costs[k]));
    return { values: order.map((k) => places[k]), costs: order.map((k) => costs[k]) };
  }

  changed(change) {
    const row = this.row.slice();
    for (const [j, option] of change) row[j] = this.options.get(j).values[option];
    return row;
  }

  cost(change) {
    let total = 0;
    for (const [j, option] of change) total += this.options.get(j).costs[option];
    return total;
  }

  // Returns the prediction for the changed row and the rules it comes from.
  status(change) {
    const row = this.changed(change), prediction = this.rules.predict(row);
    let source = "";
    if (this.rules.regression) {
      source = this.rules.voting ? this.rules.rulesThatHold(row).join() : String(prediction.rule);
    }
    return { prediction, source };
  }

  isOther(change) {
    const { prediction, source } = this.status(change), base = this.base.prediction;
    const { fallback } = this.rules;
    // Without a default prediction, uncovered rows have no other prediction.
    if (!prediction.byRules && (!fallback || fallback.policy === "abstain")) return false;
    if (!this.rules.regression) return prediction.code !== base.code;
    const same = Object.is(prediction.value, base.value) || prediction.value === base.value ||
      Math.abs(prediction.value - base.value) <= 1e-9 * Math.abs(base.value);
    // Affine predictions always differ slightly, so other rules must predict.
    return !same && source !== this.base.source;
  }

  singleChanges() {
    const found = [];
    for (const [j, options] of this.options) {
      for (let k = 1; k < options.costs.length; k++) found.push(new Map([[j, k]]));
    }
    return found;
  }

  // Returns for each rule the smallest change that makes its elementary conditions hold.
  ruleChanges() {
    const found = [];
    for (const rule of this.rules.rules) {
      const held = new Map();
      for (const condition of rule.if) {
        if (!["interval", "one_of", "missing"].includes(condition.type)) continue;
        const j = condition.feature, row = [];
        const holds = this.options.get(j).values.map((value) => {
          row[j] = value;
          return conditionHolds(condition, row);
        });
        const before = held.get(j);
        held.set(j, before ? holds.map((value, k) => value && before[k]) : holds);
      }
      if (!held.size || ![...held.values()].every((holds) => holds.includes(true))) continue;
      const change = new Map();
      for (const [j, holds] of held) if (!holds[0]) change.set(j, holds.indexOf(true));
      if (change.size > 1) found.push(change);
    }
    return found;
  }

  byDistance(changes) {
    const keyed = changes.map((change, at) => ({ change, at, cost: this.cost(change) }));
    keyed.sort((a, b) => a.cost - b.cost || a.change.size - b.change.size || a.at - b.at);
    return keyed.map((entry) => entry.change);
  }

  removeNeedlessChanges(change) {
    const parts = [...change.keys()];
    const cost = (j) => this.options.get(j).costs[change.get(j)];
    for (const j of parts.slice().sort((a, b) => cost(b) - cost(a) ||
        parts.indexOf(a) - parts.indexOf(b))) {
      const fewer = new Map([...change].filter(([i]) => i !== j));
      if (fewer.size && this.isOther(fewer)) return this.removeNeedlessChanges(fewer);
    }
    return change;
  }

  findNearest() {
    const first = (changes) => changes.find((change) => this.isOther(change));
    const singles = this.byDistance(this.singleChanges());
    const firsts = this.byDistance([...singles, ...this.ruleChanges()]);
    let found = first(firsts);
    if (!found) {
      const side = Math.floor(Math.sqrt(MAX_PAIRS)), pairs = [];
      for (const one of firsts.slice(0, side).reverse()) {
        for (const two of singles.slice(0, side)) pairs.push(new Map([...one, ...two]));
      }
      found = first(this.byDistance(pairs));
    }
    return found ? this.toCounterfactual(this.removeNeedlessChanges(found)) : null;
  }

  toCounterfactual(change) {
    const row = this.changed(change), prediction = this.rules.predict(row);
    const changes = [...change].sort((a, b) => a[0] - b[0]).map(([j, option]) => ({
      feature: j, before: this.row[j], after: this.options.get(j).values[option],
    }));
    return { changes, distance: this.cost(change), prediction, rule: prediction.rule,
             rules: this.rules.rulesThatHold(row) };
  }
}

// Explains the prediction for a row; `reason` is as in skescore.rules.explanation.
function explainRow(rules, row) {
  const prediction = rules.predict(row), held = rules.rulesThatHold(row);
  let reason = prediction.byRules ? "vote" : "fallback";
  if (prediction.rule >= 0) {
    reason = !held.includes(prediction.rule) ? "nearest"
      : rules.set.ordered || rules.set.disjoint ? "first" : "purest";
  }
  const checked = (condition) => ({
    holds: conditionHolds(condition, row),
    parts: (condition.conditions || []).map(checked),
  });
  return {
    prediction, held, reason,
    conditions: prediction.rule < 0 ? [] : rules.rules[prediction.rule].if.map(checked),
    counterfactual: prediction.predicted ? new CounterfactualSearch(rules, row).findNearest() : null,
  };
}
