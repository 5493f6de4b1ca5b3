// Buttons of the rule lists that the search offers: the best, the shortest, and the most faithful.

const ROLE_TEXTS = { shortest: "shortest within one standard error", "most faithful": "most faithful" };

class Alternatives {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.box = byId("alternatives");
    this.buttons = new Map();
  }

  show(group, score) {
    this.buttons.clear();
    const lists = group.alternatives || [];
    this.box.hidden = !lists.length;
    byId("alternatives-hint").hidden = !lists.length;
    byId("alternatives-hint").textContent = lists.length ? rowsText(group) : "";
    for (const list of lists) {
      const button = element("button", { type: "button", "aria-pressed": "false",
        onclick: () => this.onChoose(list.place) },
      element("strong", { text: rolesText(list.roles, group, score) }),
      element("span", { text: [plural(list.n_rules, "rule"), ...figureTexts(list, lists, group)].join(" · ") }),
      element("small", { text: gainText(list, group) }));
      this.buttons.set(list.place, button);
    }
    this.box.replaceChildren(...this.buttons.values());
  }

  mark(place) {
    for (const [own, button] of this.buttons) button.setAttribute("aria-pressed", String(own === place));
  }
}

function rolesText(roles, group, score) {
  const best = group.picked ? "picked" : score ? `best by ${score}` : "knee of the trade-off";
  const text = joinWords(roles.map((role) => ROLE_TEXTS[role] || best));
  return text[0].toUpperCase() + text.slice(1);
}

// Returns the figures of a list; shares have a decimal place only to distinguish different lists.
function figureTexts(list, lists, group) {
  const texts = [];
  const isShare = group.task !== "regression";
  for (const [name, verb, reference] of [["correctness", "right", "data"], ["fidelity", "agree", "model"]]) {
    if (typeof list[name] !== "number") continue;
    const percent = 100 * list[name];
    const looksAlike = lists.some((other) => other[name] !== list[name] &&
      percentText(100 * other[name]) === percentText(percent));
    texts.push(!isShare ? `R² ${tableNumber(list[name])} (${reference})`
      : `${looksAlike && percent < 99.5 ? percent.toFixed(1) : percentText(percent)} % ${verb}`);
  }
  return texts;
}

// States the figures of the next larger list that is better; empty if none is.
function gainText(list, group) {
  if (!list.next) return "";
  const more = plural(Math.round(list.next.n_rules - list.n_rules), "more rule");
  return `with ${more}: ${figureTexts(list.next, [list], group).join(" · ")}`;
}

// States what the figures of the buttons compare with, and on which rows.
function rowsText(group) {
  const isShare = group.task !== "regression";
  const rows = group.unseen_generated ? "generated rows that the model has not seen"
    : "held-out rows on which the model was not fitted";
  const weighed = group.weighed ? ` Rows are weighted${group.fidelity_weighed ? "" : ", but generated rows are not"}.` : "";
  return isShare ? `Right: compared with the data, on held-out rows. Agree: compared with the model, on ${rows}.${weighed}`
    : `R² on held-out rows (data), and against the model on ${rows}.${weighed}`;
}
