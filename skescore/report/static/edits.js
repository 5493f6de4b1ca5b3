// Edits of rules with the same resulting rules, statistics and hashes as in skescore.editing.

// --- canonical JSON and its hash ---

function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

function copyOf(value) {
  return JSON.parse(JSON.stringify(value, (key, part) => (key === "truth" ? undefined : part)));
}

// The round constants of SHA-256 are the fractional parts of cube roots of the first 64 primes, and the
// initial values those of square roots of the first eight.
const SHA_CONSTANTS = (() => {
  const primes = [], fraction = (value) => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  return { rounds: primes.map((p) => fraction(Math.cbrt(p))),
           start: primes.slice(0, 8).map((p) => fraction(Math.sqrt(p))) };
})();

function sha256(text) {
  const bytes = new TextEncoder().encode(text), n = bytes.length;
  const padded = new Uint8Array(((n + 8) >> 6 << 6) + 64);
  padded.set(bytes);
  padded[n] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(n / 2 ** 29));
  view.setUint32(padded.length - 4, (n << 3) >>> 0);
  const hash = [...SHA_CONSTANTS.start], words = new Int32Array(64);
  const turn = (word, bits) => (word >>> bits) | (word << (32 - bits));
  for (let offset = 0; offset < padded.length; offset += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(offset + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = words[i - 15], b = words[i - 2];
      words[i] = (words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + words[i - 7] +
        (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10))) | 0;
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
        SHA_CONSTANTS.rounds[i] + words[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + first) | 0;
      d = c; c = b; b = a; a = (first + second) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => { hash[i] = (hash[i] + word) | 0; });
  }
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function sha256Of(...parts) {
  return sha256(parts.map(canonicalJson).join("\n"));
}

// --- edits: functions from a rule set and arguments to another rule set ---

const FREE_SIDES = { lower: -Infinity, upper: Infinity };

function bound(condition, side) {
  return condition[side] === undefined ? FREE_SIDES[side] : condition[side];
}

function isEmptyInterval(condition) {
  const low = bound(condition, "lower"), high = bound(condition, "upper");
  return low > high || (low === high && !(condition.lower_closed && condition.upper_closed));
}

// Returns an interval as rules store it, without flags of unbounded sides; null without bounds.
function tidyInterval(condition) {
  const tidy = { type: "interval", feature: condition.feature };
  for (const side of ["lower", "upper"]) {
    if (!Number.isFinite(bound(condition, side))) continue;
    tidy[side] = condition[side];
    tidy[`${side}_closed`] = Boolean(condition[`${side}_closed`]);
  }
  if (condition.missing) tidy.missing = true;
  return tidy.lower === undefined && tidy.upper === undefined ? null : tidy;
}

// Replaces the condition of a rule on a feature; intervals come first, in the order of the features.
function withInterval(rule, feature, interval) {
  const others = rule.if.filter((c) => !(c.type === "interval" && c.feature === feature));
  const intervals = others.filter((c) => c.type === "interval");
  const tidy = tidyInterval(interval);
  if (tidy) intervals.push(tidy);
  intervals.sort((a, b) => a.feature - b.feature);
  return { ...rule, if: [...intervals, ...others.filter((c) => c.type !== "interval")] };
}

function conditionFeatures(condition) {
  if (condition.type === "at_least") return [...new Set(condition.conditions.flatMap(conditionFeatures))];
  return condition.type === "linear" ? condition.terms.map(([j]) => j) : [condition.feature];
}

function acceptsMissing(condition) {
  return condition.type === "missing" ? !condition.negated : Boolean(condition.missing);
}

// Returns whether two conditions on one feature provably exclude each other.
function excludeEachOther(a, b) {
  const [fa, fb] = [conditionFeatures(a), conditionFeatures(b)];
  if (fa.length !== 1 || fb.length !== 1 || fa[0] !== fb[0]) return false;
  const types = [a.type, b.type];
  if (types.includes("at_least") || types.includes("linear")) return false;
  const bothMissing = acceptsMissing(a) && acceptsMissing(b);
  if (types.includes("missing")) {
    const isMissing = (c) => c.type === "missing" && !c.negated;
    return (isMissing(a) || isMissing(b)) && !bothMissing;
  }
  if (bothMissing) return false;
  if (a.type === "interval" && b.type === "interval") {
    const low = [a, b].reduce((x, y) => {
      const [u, v] = [bound(x, "lower"), bound(y, "lower")];
      return v > u || (v === u && !y.lower_closed) ? y : x;
    });
    const high = [a, b].reduce((x, y) => {
      const [u, v] = [bound(x, "upper"), bound(y, "upper")];
      return v < u || (v === u && !y.upper_closed) ? y : x;
    });
    return isEmptyInterval({ lower: bound(low, "lower"), upper: bound(high, "upper"),
                             lower_closed: low.lower_closed, upper_closed: high.upper_closed });
  }
  if (a.type !== "one_of" || b.type !== "one_of") return false;
  if (!a.negated && !b.negated) return !a.values.some((v) => b.values.some((w) => sameValue(v, w)));
  if (a.negated === b.negated) return false;
  const [listed, negated] = b.negated ? [a, b] : [b, a];
  return listed.values.every((v) => negated.values.some((w) => sameValue(v, w)));
}

function areDisjoint(one, other) {
  return one.some((a) => other.some((b) => excludeEachOther(a, b)));
}

function ruleAt(set, number) {
  if (!(number >= 1 && number <= set.rules.length)) throw new Error(`There is no rule ${number}.`);
  return number - 1;
}

function moveSharedBound(rules, index, old, changed) {
  for (const side of ["lower", "upper"]) {
    const before = bound(old, side), after = bound(changed, side);
    if (!Number.isFinite(before) || !Number.isFinite(after)) continue;
    const wasBelow = Boolean(old[`${side}_closed`]) === (side === "upper");
    const isBelow = Boolean(changed[`${side}_closed`]) === (side === "upper");
    rules.forEach((rule, i) => {
      const condition = rule.if.find((c) => c.type === "interval" && c.feature === old.feature);
      if (i === index || !condition) return;
      const moved = { ...condition };
      if (condition.upper === before && condition.upper_closed === wasBelow) {
        Object.assign(moved, { upper: after, upper_closed: isBelow });
      }
      if (condition.lower === before && condition.lower_closed !== wasBelow) {
        Object.assign(moved, { lower: after, lower_closed: !isBelow });
      }
      if (isEmptyInterval(moved)) {
        throw new Error(`The rules share this bound, and rule ${i + 1} would become empty. Drop it first.`);
      }
      rules[i] = withInterval(rule, old.feature, moved);
    });
  }
}

const EDITS = {
  drop(set, { number }) {
    const index = ruleAt(set, number);
    if (set.rules.length === 1) throw new Error("The last rule cannot be dropped.");
    return set.rules.filter((_, i) => i !== index);
  },

  set_bound(set, { number, feature, ...bounds }) {
    const index = ruleAt(set, number), j = set.feature_names.indexOf(feature);
    const rule = set.rules[index], rules = [...set.rules];
    const old = rule.if.find((c) => c.type === "interval" && c.feature === j);
    if (!old) throw new Error(`Rule ${number} has no bound of ${feature}.`);
    const changed = { ...old, ...bounds };
    if (isEmptyInterval(changed)) throw new Error(`No number would lie between the bounds of rule ${number}.`);
    rules[index] = withInterval(rule, j, changed);
    if (set.disjoint) moveSharedBound(rules, index, old, changed);
    return rules;
  },

  set_output(set, { number, output }) {
    const index = ruleAt(set, number);
    return set.rules.map((rule, i) => (i === index ? { ...rule, then: output } : rule));
  },

  forbid(set, { feature }) {
    const j = set.feature_names.indexOf(feature);
    return set.rules.map((rule, i) => {
      const uses = (part) => part && part.terms && part.terms.some(([k]) => k === j);
      const combined = rule.if.some((c) => conditionFeatures(c).includes(j) && conditionFeatures(c).length > 1);
      if (combined || uses(rule.then) || uses(rule.weight)) {
        throw new Error(`Rule ${i + 1} combines ${feature} with other features; drop that rule first.`);
      }
      return { ...rule, if: rule.if.filter((c) => !conditionFeatures(c).includes(j)) };
    });
  },
};

// Returns what determines the rows of each rule: its premise, and in a list the premises before it.
function regionsOf(set) {
  const earlier = new Set();
  return set.rules.map((rule) => {
    const premise = canonicalJson(rule.if);
    if (!set.ordered) return premise;
    const region = canonicalJson([[...earlier].sort(), premise]);
    earlier.add(premise);
    return region;
  });
}

// Rules that are no longer disjoint become an ordered list.
function withValidOrder(before, after) {
  if (!after.disjoint || after.voting) return after;
  const premises = after.rules.map((rule) => canonicalJson(rule.if));
  const old = new Set(before.rules.map((rule) => canonicalJson(rule.if)));
  const overlaps = after.rules.some((rule, i) => !old.has(premises[i]) &&
    after.rules.some((other, k) => i !== k && !areDisjoint(rule.if, other.if)));
  if (!overlaps && new Set(premises).size === premises.length) return after;
  return { ...after, ordered: true, disjoint: false };
}

// Removes statistics of rules whose rows may have changed.
function withValidStatistics(before, after) {
  if (after.voting || !(after.ordered || after.disjoint)) return after;
  const sameKind = before.ordered === after.ordered && before.disjoint === after.disjoint;
  const old = new Map();
  if (sameKind) regionsOf(before).forEach((region, i) => old.set(region, before.rules[i]));
  const regions = regionsOf(after);
  const rules = after.rules.map((rule, i) => {
    const { statistics: _, ...bare } = rule, earlier = old.get(regions[i]);
    if (!earlier || !earlier.statistics) return bare;
    const statistics = { ...earlier.statistics };
    if (canonicalJson(earlier.then) !== canonicalJson(rule.then)) {
      delete statistics.model_error;
      delete statistics.target_error;
    }
    return { ...bare, statistics };
  });
  return { ...after, rules };
}

// The format has version 2 if rules or the domain mention missing values.
function withVersion(set) {
  const mentions = (c) => (c.type === "at_least" ? c.conditions.some(mentions)
    : c.type === "missing" || Boolean(c.missing));
  const domain = set.domain && (set.domain.missing || []).some((share) => share > 0);
  return { ...set, version: domain || set.rules.some((rule) => rule.if.some(mentions)) ? 2 : 1 };
}

function applyEdit(set, edit) {
  const { action, ...values } = edit;
  const rules = EDITS[action](set, values);
  const edited = { ...set, rules };
  return withVersion(copyOf(withValidStatistics(set, withValidOrder(set, edited))));
}

// --- the log ---

class EditLog {
  constructor(set, rows) {
    this.header = { format: "skescore edit log", version: 1, rules: copyOf(set), rows };
    this.start = sha256Of(this.header);
    this.steps = [];
    this.set = this.header.rules;
    this.past = [];
    this.future = [];
  }

  get seal() {
    return this.steps.length ? this.steps[this.steps.length - 1].sha256 : this.start;
  }

  // Applies an edit, or moves in the history.
  change(edit) {
    const before = this.set;
    if (edit.action === "undo" || edit.action === "redo") {
      const [from, to] = edit.action === "undo" ? [this.past, this.future] : [this.future, this.past];
      if (!from.length) throw new Error(`There is no edit to ${edit.action}.`);
      to.push(before);
      this.set = from.pop();
    } else {
      const edited = applyEdit(before, edit);
      this.past.push(before);
      this.future = [];
      this.set = edited;
    }
  }

  // Restores recorded steps. `base` is the state after the last step taken in Python, which has edits
  // that the page cannot repeat.
  restore(steps, base) {
    const { n_steps: count, rules, past, future } = base || { n_steps: 0, rules: this.header.rules, past: [], future: [] };
    Object.assign(this, { set: rules, past: [...past], future: [...future], steps: steps.slice(0, count) });
    for (const step of steps.slice(count)) {
      this.change(step.edit);
      this.steps.push(step);
    }
  }

  // Applies an edit, or moves in the history, and records it.
  append(edit, { author, reason, time, lines }) {
    const before = this.set;
    this.change(edit);
    const [old, current] = [lines(before), lines(this.set)];
    const only = (one, other) => one.filter(([, text]) => !other.some(([, t]) => t === text))
      .map(([number, text]) => `${number}. ${text}`);
    const content = {
      step: this.steps.length + 1, time, author: author || null, reason: reason || null, edit,
      before: only(old, current), after: only(current, old), rules_sha256: sha256Of(this.set),
    };
    this.steps.push({ ...content, sha256: sha256Of(this.seal, content) });
  }

  toJson() {
    const end = { n_steps: this.steps.length, seal: this.seal };
    return JSON.stringify({ ...this.header, sha256: this.start, steps: this.steps, ...end }, null, 2);
  }
}
