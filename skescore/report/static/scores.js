"use strict";
// Scores of rule sets, candidate by candidate and fold by fold. The specifications come from
// skescore.scorers.SCORE_SPECS, with the formula as an expression tree: [operator, ...arguments],
// names of variables, and numbers. A score without a formula is shown as it was recorded.

const SCORES = {};
// Limits that users can set, and headings of measured quantities; filled from the page's content.
const LIMITS = [], HEADINGS = {};
const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "**": Math.pow,
  ceil: roundUp,
  exp: Math.exp,
  log: Math.log,
  log2: Math.log2,
  falling_sigmoid: (x) => sigmoid(-x),
};

// Returns the formula of a score as a function of { p, r, c, ...weights }; null without a formula.
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
function roundUp(value) {
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
  // Scores are undefined for the same sizes as in Python.
  if (size < spec.least_size) return NaN;
  const share = folds["completeness_" + settings.completeness][k];
  return formula({ ...settings, p: folds[spec.kept_as][k], r: size, c: share });
}

function mean(values) {
  let total = 0;
  for (const value of values) total += value;
  return values.length ? total / values.length : NaN;
}

function standardDeviation(values, lost = 0) {
  const middle = mean(values);
  let total = 0;
  for (const value of values) total += (value - middle) * (value - middle);
  return values.length > lost ? Math.sqrt(total / (values.length - lost)) : 0;
}

// Computes the means of the measures that do not depend on weights.
function computeMeans(group) {
  group.candidates.forEach((candidate, place) => {
    candidate.place = place;
    candidate.means = {};
    for (const [name, values] of Object.entries(candidate.folds)) {
      candidate.means[name] = values.includes(null) ? NaN : mean(values);
    }
    candidate.count = candidate.folds.loss.length;
  });
}

// Returns whether a candidate keeps the limits, like SearchLimits.allow in skescore.tuning.
function keepsLimits(candidate, settings) {
  return LIMITS.every(({ parameter, quantity, sign, of_final_rules: ofFinalRules }) => {
    const limit = settings[parameter];
    if (typeof limit !== "number") return true;
    const final = ofFinalRules && candidate.all_rows && candidate.all_rows[quantity];
    const value = final && typeof final[0] === "number" ? final[0] : candidate.means[quantity];
    return sign * (limit - value) <= 1e-9;  // NaN exceeds every limit.
  });
}

// Scores and ranks all candidates: those within the limits first, then by best mean, then by fewer
// rules, then by position.
function rank(group, settings) {
  const greater = SCORES[settings.score].greater;
  const scored = group.candidates.map((candidate) => {
    const folds = Array.from({ length: candidate.count }, (_, k) =>
      foldScore(settings, candidate.folds, k));
    return { place: candidate.place, folds, score: mean(folds),
             spread: folds.length ? standardDeviation(folds) : NaN };
  });
  const order = scored.map((_, place) => place);
  for (const one of scored) one.beyond = !keepsLimits(group.candidates[one.place], settings);
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
  return { scored, order, choice: chooseWinner(group, settings, scored, order) };
}

// Combines the measures of held-out rows and of all rows, weighted by `share`, into a score per fold.
// If a fold has another number of rules than all rows give, the mean number of rules belongs to no
// rule set: then the worse of this score and the weighted mean of both scores counts. Null if there
// are no rules of all rows.
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

// Returns the scores per fold by which candidates are compared: of held-out rows and all rows.
// Candidates that were not measured on all rows are excluded if a measured candidate equals each of
// them on every fold; otherwise held-out rows alone decide. Candidates without rules of all rows
// never win.
function comparedScores(group, settings, scored, places, sign) {
  const combined = new Map(), unmeasured = [], failed = new Set();
  for (const place of places) {
    const candidate = group.candidates[place];
    if (!candidate.all_rows || !(formulaOf(settings.score) || settings.score in candidate.all_rows)) {
      unmeasured.push(place);
      continue;
    }
    const folds = scoresWithAllRows(candidate, settings, group.share_of_all_rows, sign);
    if (folds) combined.set(place, folds);
    else failed.add(place);
  }
  const noise = 1e-12 * Math.max(1, ...places.flatMap((p) => scored[p].folds.map(Math.abs)));
  const isEqualled = (place) => [...combined.keys()].some((other) =>
    scored[other].folds.every((v, k) => sign * v >= sign * scored[place].folds[k] - noise));
  const heldOutScores = (chosen) => chosen.map((place) => ({ place, folds: scored[place].folds }));
  if (!unmeasured.every(isEqualled)) return heldOutScores(places.filter((place) => !failed.has(place)));
  if (!combined.size) return heldOutScores(places);
  return places.filter((place) => combined.has(place))
    .map((place) => ({ place, folds: combined.get(place) }));
}

// Returns the candidate that a search chooses: the smallest of those whose scores are within the
// standard errors of the best, by the differences on the folds.
function chooseWinner(group, settings, scored, order) {
  const ranked = order.filter((place) => !Number.isNaN(scored[place].score) && !scored[place].beyond);
  if (!formulaOf(settings.score) && !SCORES[settings.score].recorded) return null;
  if (group.standard_errors === null || !ranked.length) return ranked.length ? ranked[0] : null;
  const sign = SCORES[settings.score].greater ? 1 : -1;
  const found = comparedScores(group, settings, scored, ranked, sign);
  for (const one of found) one.mean = sign * mean(one.folds);
  // The last bits depend on the order of summation, so they are rounded off.
  const scale = Math.max(1, ...found.map((one) => Math.abs(one.mean)));
  for (const one of found) one.rounded = Math.round((one.mean / scale) * 1e12) / 1e12;
  const best = found.reduce((a, b) => (b.rounded > a.rounded ? b : a));
  const noise = 1e-12 * Math.max(1, Math.abs(best.mean));
  const near = found.filter((one) => {
    const behind = one.folds.map((value, k) => sign * (best.folds[k] - value));
    const error = behind.length > 1 ? standardDeviation(behind, 1) / Math.sqrt(behind.length) : 0;
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

// Describes the vertical axis of the plot: correct predictions of 100 rows, a mean error, or the
// recorded score if the page has no formula for it.
function qualityAxis(group, settings) {
  const score = SCORES[settings.score];
  if (score && score.recorded) {
    return { title: score.label, greater: score.greater, of: (c) => c.means[settings.score],
             text: (value) => `${score.label} ${tableNumber(value)}` };
  }
  const byModel = group.reference === "black-box";
  if (group.task === "regression") {
    const title = `average error (${byModel ? "model" : "data"})`;
    return { title, greater: false, of: (c) => c.means.loss, text: (value) => `${title} ${shortNumber(value)}` };
  }
  return { title: byModel ? "agree with the model, of 100 rows" : "right (data), of 100 rows", greater: true,
           of: (c) => 100 * (1 - c.means.loss), byModel,
           text: (value) => `${percentText(value)} of 100 ${byModel ? "agree" : "right"}` };
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
