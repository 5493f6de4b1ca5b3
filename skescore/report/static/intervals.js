// Confidence intervals of paired differences, as in skescore.editing.

// Logarithm of n! at position n, up to the largest n needed so far.
const LOG_FACTORIALS = [0];

function logFactorial(n) {
  for (let k = LOG_FACTORIALS.length; k <= n; k++) LOG_FACTORIALS.push(LOG_FACTORIALS[k - 1] + Math.log(k));
  return LOG_FACTORIALS[n];
}

// Returns the probability of at least `hits` in `n` trials that succeed with probability p.
function upperTail(hits, n, p) {
  if (hits <= 0) return 1;
  if (hits > n || p <= 0) return 0;
  if (p >= 1) return 1;
  let total = 0;
  for (let k = hits; k <= n; k++) {
    const ways = logFactorial(n) - logFactorial(k) - logFactorial(n - k);
    total += Math.exp(ways + k * Math.log(p) + (n - k) * Math.log1p(-p));
  }
  return Math.min(1, total);
}

// Returns the probability of success for which the upper tail, which grows with it, equals `size`.
function probabilityWithTail(hits, n, size) {
  let [low, high] = [0, 1];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (upperTail(hits, n, middle) < size) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// Returns the interval of Clopper and Pearson for a probability.
function clopperPearson(hits, n, error) {
  return [hits === 0 ? 0 : probabilityWithTail(hits, n, error / 2),
          hits === n ? 1 : probabilityWithTail(hits + 1, n, 1 - error / 2)];
}

// Returns the interval of the difference of two shares of the same rows; both list whether each row counts.
function intervalOfShares(before, after, { confidence, share_of_change: share }) {
  const gained = after.filter((is, k) => is && !before[k]).length;
  const lost = before.filter((is, k) => is && !after[k]).length;
  const error = 1 - confidence, changed = gained + lost;
  const change = clopperPearson(changed, before.length, share * error);
  const direction = changed ? clopperPearson(gained, changed, (1 - share) * error) : [0, 1];
  const corners = change.flatMap((d) => direction.map((p) => d * (2 * p - 1)));
  return [Math.min(...corners), Math.max(...corners)];
}

// Returns the interval of the difference of two means of the same rows, by Student's t.
function intervalOfMeans(before, after, { t_quantile: t }) {
  const differences = after.map((value, k) => value - before[k]), n = differences.length;
  if (differences.every((d) => d === differences[0])) return [differences[0], differences[0]];
  const middle = mean(differences);
  const variance = differences.reduce((sum, d) => sum + (d - middle) ** 2, 0) / (n - 1);
  const half = t * Math.sqrt(variance / n);
  return [middle - half, middle + half];
}
