// Puts the parts of the page together.

const page = {};

function start() {
  const content = JSON.parse(byId("content").textContent);
  page.content = content;
  Object.assign(SCORES, content.scores);
  content.groups.forEach((group) => {
    group.has_rules = Object.keys(content.views).length > 0;
    prepare(group);
  });
  const made = new Map();
  const rulesOf = (place) => {
    const view = content.views[String(place)];
    if (view && !made.has(place)) made.set(place, new Rules(view));
    return view ? made.get(place) : null;
  };
  tryRow = new TryRow();
  page.tryRow = tryRow;
  const onChoose = (place, anew) => {
    const { group, ranking, settings } = page.tradeOff;
    const rules = rulesOf(place);
    showCandidate(group, place, ranking, settings, rules !== null);
    if (!anew) return;
    for (const id of ["rules", "try", "exports"]) byId(id).hidden = rules === null;
    if (rules === null) return;
    page.rules = rules;
    showRules(rules, content.rows, place === group.winner, group.candidates[place].extractor);
    tryRow.show(rules, content.rows);
    showExports(rules.view);
  };
  page.tradeOff = new TradeOff(content, onChoose);
  const show = (at) => {
    const group = content.groups[at];
    page.tradeOff.show(group);
    describeGroup(content, group);
    // A winner that cannot be ranked has rules nevertheless.
    if (group.winner === null && content.views["-1"]) showLonelyRules(content, rulesOf(-1));
  };
  const select = byId("group");
  if (select) select.addEventListener("change", () => show(Number(select.value)));
  show(0);
  const recolour = () => page.tradeOff.recolour();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", recolour);
  page.ready = performance.now();
  document.documentElement.dataset.ready = "true";
}

function showLonelyRules(content, rules) {
  for (const id of ["rules", "try", "exports"]) byId(id).hidden = false;
  page.rules = rules;
  showRules(rules, content.rows, true, "the search's winner");
  tryRow.show(rules, content.rows);
  showExports(rules.view);
}

function describeGroup(content, group) {
  const order = page.tradeOff.ranking.order;
  const start = page.tradeOff.settings;
  const first = group.winner !== null ? group.winner : order[0];
  if (first !== undefined && group.candidates[first].count) {
    const candidate = group.candidates[first];
    const what = group.winner !== null ? `The search chose ${candidate.extractor}`
      : `${candidate.extractor} has the best score`;
    byId("headline").textContent = `${what} out of ` +
      `${plural(group.candidates.length, "candidate")}: ${fixed(candidate.means.size, 1)} rules on ` +
      `average, performance ${fixed(candidate.means.performance)}, ` +
      `${kind_label(start)} ${fixed(page.tradeOff.ranking.scored[first].score, 4)}.`;
  }
  if (content.kind !== "bench") return;
  byId("fact-data").textContent = `${group.data}${group.task ? ` (${group.task})` : ""}`;
  const quality = group.quality.quality;
  byId("fact-black-box").textContent = group.black_box +
    (quality === undefined ? "" : `: performance ${fixed(quality)} (mean of the folds)`);
  const counts = group.candidates.map((candidate) => candidate.count);
  const least = Math.min(...counts), most = Math.max(...counts);
  byId("fact-measured").textContent = `${plural(group.candidates.length, "candidate")} ` +
    `(extractors with their parameters), each on ${least === most ? most : `${least} to ${most}`} ` +
    "splits (seeds and folds)";
}

start();
