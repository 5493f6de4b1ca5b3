"use strict";
// Scores of rule sets, candidate by candidate and fold by fold. The specifications come from
// skescore.scorers.SCORE_SPECS, with the formula as an expression tree: [operator, ...arguments],
// names of variables, and numbers. A score without a formula is shown as it was recorded.

const SCORES = {};
// Limits that can be set, and headings of measured quantities; filled from the page's content.
const LIMITS = [], HEADINGS = {};
const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "**": Math.pow,
  ceil: wholeNumber,
  exp: Math.exp,
  log: Math.log,
  log2: Math.log2,
  falling_sigmoid: (x) => sigmoid(-x),
};

// The formula of a score as a function of { p, r, c, ...weights }; null if it is not known.
function formulaOf(name) {
  const spec = SCORES[name];
  if (!spec || !spec.formula) return null;
  if (!spec.compiled) spec.compiled = compileExpression(spec.formula);
  return spec.compiled;
}

function compileExpression(tree) {
  if (typeof tree === "number") return () => tree;
  if (typeof tree === "string") return (values) => values[tree];
  const operation = OPERATIONS[tree[0]];
  const [first, second] = tree.slice(1).map(compileExpression);
  return second ? (values) => operation(first(values), second(values))
    : (values) => operation(first(values));
}

function sigmoid(x) {
  if (x >= 0) return 1 / (1 + Math.exp(-x));
  const power = Math.exp(x);
  return power / (1 + power);
}

// Rounds up; a value within float noise of a whole number counts as that number.
function wholeNumber(value) {
  const nearest = Math.round(value);
  const noise = 32 * Number.EPSILON * Math.abs(value);
  return Math.abs(value - nearest) <= noise ? nearest : Math.ceil(value);
}

function foldScore(settings, folds, k) {
  const spec = SCORES[settings.score], formula = formulaOf(settings.score);
  if (!formula) {
    const recorded = (folds[settings.score] || [])[k];
    return typeof recorded === "number" ? recorded : NaN;
  }
  const size = folds.size[k];
  // Where a score is not defined in Python, it is not here either.
  if (size < spec.least_size) return NaN;
  const share = folds["completeness_" + settings.completeness][k];
  return formula({ ...settings, p: folds[spec.kept_as][k], r: size, c: share });
}

function mean(values) {
  let total = 0;
  for (const value of values) total += value;
  return values.length ? total / values.length : NaN;
}

function spread(values, lost = 0) {
  const middle = mean(values);
  let total = 0;
  for (const value of values) total += (value - middle) * (value - middle);
  return values.length > lost ? Math.sqrt(total / (values.length - lost)) : 0;
}

// Means of what does not depend on weights, once and for all.
function prepare(group) {
  group.candidates.forEach((candidate, place) => {
    candidate.place = place;
    candidate.means = {};
    for (const [name, values] of Object.entries(candidate.folds)) {
      candidate.means[name] = values.includes(null) ? NaN : mean(values);
    }
    candidate.count = candidate.folds.loss.length;
  });
}

// Whether a candidate keeps to the limits, as SearchLimits.allow of skescore.tuning has it.
function allowed(candidate, settings) {
  return LIMITS.every(({ parameter, quantity, sign, of_final_rules: ofFinalRules }) => {
    const limit = settings[parameter];
    if (typeof limit !== "number") return true;
    const final = ofFinalRules && candidate.all_rows && candidate.all_rows[quantity];
    const value = final && typeof final[0] === "number" ? final[0] : candidate.means[quantity];
    return sign * (limit - value) <= 1e-9;  // not a number is beyond any limit
  });
}

// Scores of all candidates and their order: what keeps to the limits first, then best mean first,
// then fewer rules, then the earlier.
function rank(group, settings) {
  const greater = SCORES[settings.score].greater;
  const scored = group.candidates.map((candidate) => {
    const folds = Array.from({ length: candidate.count }, (_, k) =>
      foldScore(settings, candidate.folds, k));
    return { place: candidate.place, folds, score: mean(folds),
             spread: folds.length ? spread(folds) : NaN };
  });
  const order = scored.map((_, place) => place);
  for (const one of scored) one.beyond = !allowed(group.candidates[one.place], settings);
  order.sort((a, b) => {
    if (scored[a].beyond !== scored[b].beyond) return scored[a].beyond - scored[b].beyond;
    const first = scored[a].score, second = scored[b].score;
    if (Number.isNaN(first) || Number.isNaN(second)) {
      return Number.isNaN(first) - Number.isNaN(second) || a - b;
    }
    if (first !== second) return greater ? second - first : first - second;
    return group.candidates[a].means.size - group.candidates[b].means.size || a - b;
  });
  order.forEach((place, at) => { scored[place].rank = at + 1; });
  return { scored, order, choice: choice(group, settings, scored, order) };
}

// Scores of held-out rows and all rows together: made of what is weighed. If the fold has not as
// many rules as there are of all rows, nobody gets the number between: then the worse one counts,
// that score or the weighed score. Null if there are no rules of all rows.
function scoresWithAllRows(candidate, settings, share, sign) {
  const rows = Object.fromEntries(Object.entries(candidate.all_rows).map(([name, [value]]) =>
    [name, [value === null ? NaN : value]]));
  if (!(rows.size[0] > 0)) return null;
  const mix = (heldOut, all) => (1 - share) * heldOut + share * all;
  if (!formulaOf(settings.score)) {
    const recorded = candidate.folds[settings.score].map((v) =>
      mix(v === null ? NaN : v, rows[settings.score][0]));
    return recorded.some(Number.isNaN) ? null : recorded;
  }
  const parts = Object.fromEntries(Object.entries(rows).map(([name, [all]]) =>
    [name, candidate.folds[name].map((heldOut) => mix(heldOut, all))]));
  const found = candidate.folds.size.map((size, k) => {
    const ofParts = foldScore(settings, parts, k);
    if (size === rows.size[0]) return ofParts;
    const weighed = mix(foldScore(settings, candidate.folds, k), foldScore(settings, rows, 0));
    return sign * Math.min(sign * ofParts, sign * weighed);
  });
  return found.some(Number.isNaN) ? null : found;
}

// What candidates are judged by, fold by fold: held-out rows and all rows. Those that were not
// measured on all rows are left out if each of them is equalled on every fold by one that was; else
// held-out rows alone decide. What has no rules of all rows never wins.
function judged(group, settings, scored, places, sign) {
  const known = new Map(), unknown = [], failed = new Set();
  for (const place of places) {
    const candidate = group.candidates[place];
    if (!candidate.all_rows || !(formulaOf(settings.score) || settings.score in candidate.all_rows)) {
      unknown.push(place);
      continue;
    }
    const folds = scoresWithAllRows(candidate, settings, group.share_of_all_rows, sign);
    if (folds) known.set(place, folds);
    else failed.add(place);
  }
  const noise = 1e-12 * Math.max(1, ...places.flatMap((p) => scored[p].folds.map(Math.abs)));
  const equalled = (place) => [...known.keys()].some((other) =>
    scored[other].folds.every((v, k) => sign * v >= sign * scored[place].folds[k] - noise));
  const asTheyAre = (some) => some.map((place) => ({ place, folds: scored[place].folds }));
  if (!unknown.every(equalled)) return asTheyAre(places.filter((place) => !failed.has(place)));
  if (!known.size) return asTheyAre(places);
  return places.filter((place) => known.has(place))
    .map((place) => ({ place, folds: known.get(place) }));
}

// The rule by which a search chooses: the smallest of those that are as good as the best as far as
// one can tell from the differences on the folds.
function choice(group, settings, scored, order) {
  const known = order.filter((place) => !Number.isNaN(scored[place].score) && !scored[place].beyond);
  if (!formulaOf(settings.score) && !SCORES[settings.score].recorded) return null;
  if (group.standard_errors === null || !known.length) return known.length ? known[0] : null;
  const sign = SCORES[settings.score].greater ? 1 : -1;
  const found = judged(group, settings, scored, known, sign);
  for (const one of found) one.mean = sign * mean(one.folds);
  // Without their last bits, which hang on the order of the sums.
  const scale = Math.max(1, ...found.map((one) => Math.abs(one.mean)));
  for (const one of found) one.rounded = Math.round((one.mean / scale) * 1e12) / 1e12;
  const best = found.reduce((a, b) => (b.rounded > a.rounded ? b : a));
  const noise = 1e-12 * Math.max(1, Math.abs(best.mean));
  const near = found.filter((one) => {
    const behind = one.folds.map((value, k) => sign * (best.folds[k] - value));
    const error = behind.length > 1 ? spread(behind, 1) / Math.sqrt(behind.length) : 0;
    return best.mean - one.mean <= group.standard_errors * error + noise;
  });
  const cost = (one, name) => {
    const value = group.candidates[one.place].means[name];
    return value === undefined || Number.isNaN(value) ? Infinity : value;
  };
  const compare = (a, b) => (a === b ? 0 : a < b ? -1 : 1);
  const size = (one) => Math.round(cost(one, "size") * 1e9) / 1e9;
  return near.reduce((chosen, one) => {
    const better =
      compare(size(one), size(chosen)) || compare(chosen.rounded, one.rounded) ||
      compare(cost(one, "black_box_rows"), cost(chosen, "black_box_rows"));
    return better < 0 ? one : chosen;
  }).place;
}

// How good predictions are in the picture: of 100 rows so many right, a mean error, or the score that
// was searched for where the page has no formula for it.
function qualityAxis(group, settings) {
  const score = SCORES[settings.score];
  if (score && score.recorded) {
    return { title: score.label, greater: score.greater, of: (c) => c.means[settings.score],
             text: (value) => `${score.label} ${fixed(value)}` };
  }
  if (group.task === "regression") {
    return { title: "average error", greater: false, of: (c) => c.means.loss,
             text: (value) => `average error ${shortNumber(value)}` };
  }
  return { title: "right, of 100 rows", greater: true, of: (c) => 100 * (1 - c.means.loss),
           text: (value) => `${ofHundred(value)} of 100 right` };
}

// Returns the indices of the best trade-offs between size and errors, fewest rules first.
function frontOf(group, axis) {
  const sign = axis.greater ? -1 : 1;
  const order = group.candidates.map((c) => c.place).filter((p) =>
    group.candidates[p].count && !Number.isNaN(axis.of(group.candidates[p])));
  const size = (place) => group.candidates[place].means.size;
  const error = (place) => sign * axis.of(group.candidates[place]);
  order.sort((a, b) => size(a) - size(b) || error(a) - error(b) || a - b);
  let least = Infinity;
  return order.filter((place) => {
    if (error(place) >= least) return false;
    least = error(place);
    return true;
  });
}
