// Assembles the parts of the page.

// Largest numbers of rules and of fields for which the form of a row fits below the rules.
const MAX_RULES_BESIDE_ROW = 3, MAX_FIELDS_BESIDE_RULES = 6;

const page = {};

function start() {
  const content = JSON.parse(byId("content").textContent);
  page.content = content;
  if (content.kind === "compare") {
    page.comparison = new Comparison(content);
  } else {
    Object.assign(SCORES, content.scores);
    LIMITS.push(...content.limits);
    Object.assign(HEADINGS, content.headings);
    startRun(content);
  }
  if (content.embedded) {
    page.notebook = new Notebook();
    if (page.tradeOff) page.notebook.place = page.tradeOff.chosen;
    page.notebook.send({ ready: true });
  }
  page.ready = performance.now();
  document.documentElement.dataset.ready = "true";
}

function startRun(content) {
  content.groups.forEach(computeMeans);
  const rulesByPlace = new Map();
  const rulesOf = (place) => {
    const view = content.views[String(place)];
    if (view && !rulesByPlace.has(place)) rulesByPlace.set(place, new Rules(view, content.target));
    return view ? rulesByPlace.get(place) : null;
  };
  tryRow = new TryRow();
  page.tryRow = tryRow;
  if (content.editing) page.editor = new RuleEditor(content, content.views[content.editing.view]);
  if (content.certificate) page.provenBounds = new ProvenBounds(content.certificate);
  if (content.kind === "rules") {
    for (const id of ["trade-off", "all"]) byId(id).hidden = true;
    showHero(content, content.groups[0], null, rulesOf(-1));
    return;
  }
  const onChoose = (place, anew) => {
    const { group, ranking, settings } = page.tradeOff;
    showCandidate(group, place, ranking, settings);
    if (page.provenBounds) page.provenBounds.show(settings);
    if (anew) {
      showHero(content, group, place, rulesOf(place));
      if (page.notebook) page.notebook.chose(place);
    }
    if (content.kind !== "bench") describeChoice(content, group, place, ranking, settings);
  };
  page.tradeOff = new TradeOff(content, onChoose);
  const show = (at) => {
    const group = content.groups[at];
    page.tradeOff.show(group);
    describeGroup(content, group);
    // A winner without a rank still has rules.
    if (group.winner === null && content.views["-1"]) showHero(content, group, null, rulesOf(-1));
  };
  const select = byId("group");
  if (select) select.addEventListener("change", () => show(Number(select.value)));
  show(0);
}

// Shows the first screen and the other parts that belong to the chosen rules.
function showHero(content, group, place, rules) {
  for (const id of ["try", "exports"]) byId(id).hidden = rules === null;
  const isBench = content.kind === "bench";
  byId("headline").replaceChildren(...headline(content, group, place, rules));
  page.rules = rules;
  if (!isBench) {
    byId("tiles").replaceChildren(...tiles(content, group, place, rules));
    showQuality(content, group, place, rules);
  }
  byId("rules").hidden = isBench;
  byId("rules-hint").textContent = rules ? [predictionHint(rules), countedHint(content, rules)].filter(Boolean).join(" ") : "";
  byId("no-rules").hidden = rules !== null || isBench;
  byId("cards").hidden = rules === null;
  byId("glance").hidden = true;
  if (rules === null) return;
  placeTryRow(rules);
  showGlance(byId("glance"), rules);
  showCards(byId("cards"), rules, content.rows);
  tryRow.show(rules, content.rows);
  showExports(rules.view);
}

// Shows the form for a row below the rules if it fits beside the trade-off, otherwise further below.
function placeTryRow(rules) {
  const form = byId("try"), column = document.querySelector(".hero .left");
  const fits = rules.rules.length <= MAX_RULES_BESIDE_ROW && rules.view.used.length <= MAX_FIELDS_BESIDE_RULES;
  page.belowTryRow = page.belowTryRow || form.nextElementSibling;
  if (fits && page.content.kind === "tune") column.append(form);
  else page.belowTryRow.before(form);
}

function headline(content, group, place, rules) {
  if (content.kind === "bench") {
    const best = page.tradeOff.ranking.order[0];
    return best === undefined ? [] : [`${group.candidates[best].extractor} is best out of ` +
      `${plural(group.candidates.length, "candidate")} by ${scoreLabel(page.tradeOff.settings)}.`];
  }
  const count = rules ? rules.rules.length : Math.round(group.candidates[place].means.size);
  const parts = [`${plural(count, "rule")} that ${count === 1 ? "predicts" : "predict"} `,
                 element("b", { text: content.target || "the target" })];
  if (group.black_box) parts.push(", as an explanation of the model ", element("b", { text: group.black_box }));
  return [...parts, "."];
}

// Returns a function that writes scores with as many digits as distinguish two of them.
function scoreDigits(one, other) {
  const digits = [3, 4, 5].find((n) => one === other || tableNumber(one, n) !== tableNumber(other, n)) || 3;
  return (score) => tableNumber(score, digits);
}

// States the score by which the shown rules were chosen, and their rank.
function describeChoice(content, group, place, ranking, settings) {
  const entry = ranking.scored[place], label = scoreLabel(settings);
  const count = group.candidates.length;
  const isWinner = place === group.winner;
  const best = ranking.order[0];
  const chooser = isWinner && group.picked ? "Selected by the user" :
    `${isWinner ? "The" : "Not the"} search’s choice`;
  const digits = scoreDigits(entry.score, ranking.scored[best].score);
  let text = `${chooser}: ${label} ` +
    `${digits(entry.score)}, rank ${entry.rank} of ${plural(count, "candidate")}`;
  if (isWinner && group.picked) {
    if (entry.rank > 1) text += `. The best has ${digits(ranking.scored[best].score)}`;
  } else if (isWinner && !group.scored_by) {
    text += ". The search minimized several losses together, and chose the knee of their trade-off";
  } else if (isWinner && entry.rank > 1) {
    text += `. The best has ${digits(ranking.scored[best].score)}, a difference that can be due to chance. The search preferred these rules ` +
      "for their size or their score on all rows";
  }
  if (entry.beyond) text += ". It is beyond the limits";
  byId("chosen-by").textContent = `${text}.`;
}

function describeGroup(content, group) {
  if (content.kind !== "bench") return;
  byId("fact-data").textContent = `${group.data}${group.task ? ` (${group.task})` : ""}`;
  const quality = group.quality.quality;
  byId("fact-black-box").textContent = group.black_box +
    (quality === undefined ? "" : `: performance ${tableNumber(quality)} (mean of the folds)`);
  const counts = group.candidates.map((candidate) => candidate.count);
  const least = Math.min(...counts), most = Math.max(...counts);
  byId("fact-measured").textContent = `${plural(group.candidates.length, "candidate")} ` +
    `(extractors with their parameters), each on ${least === most ? most : `${least} to ${most}`} ` +
    "splits (seeds and folds)";
}

start();
