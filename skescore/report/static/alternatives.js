// Buttons of the rule lists that the search offers: the best, the shortest, and the most faithful.

const ROLE_TEXTS = { shortest: "shortest that is as right", "most faithful": "most faithful" };

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
      ...figureTexts(list, group).map((text) => element("span", { text })));
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

function figureTexts(list, group) {
  const texts = [plural(list.n_rules, "rule")];
  const isShare = group.task !== "regression";
  if (typeof list.correctness === "number") {
    texts.push(isShare ? `right ${percentText(100 * list.correctness)} %` : `R² ${tableNumber(list.correctness)} (data)`);
  }
  if (typeof list.fidelity === "number") {
    texts.push(isShare ? `agrees ${percentText(100 * list.fidelity)} %` : `R² ${tableNumber(list.fidelity)} (model)`);
  }
  return texts;
}

// States what the figures of the buttons compare with, and on which rows.
function rowsText(group) {
  const isShare = group.task !== "regression";
  const rows = group.unseen_generated ? "generated rows that the model has not seen"
    : "held-out rows that the model was not fitted on";
  return isShare ? `Right: correct on held-out rows (data). Agrees: predicts as the model does on ${rows}.`
    : `R² on held-out rows (data), and against the model on ${rows}.`;
}
