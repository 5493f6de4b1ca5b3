// Trade-off between rules and errors: the slider, its weights, the limits, and the best candidate.

const COMPLETENESS_TEXTS = { volume: "of the volume", instances: "of the rows" };

class TradeOff {
  constructor(content, onChoose) {
    this.content = content;
    this.onChoose = onChoose;
    this.settings = this.start();
    this.announce = debounce(400, (text) => { byId("announcer").textContent = text; });
    this.board = new Leaderboard(content, {
      onChoose: (place) => this.choose(place, true), announce: this.announce,
    });
    this.scatter = new Scatter(byId("plot"), {
      onChoose: (place) => this.choose(place, true), describe: (place) => this.tip(place),
      label: "Best trade-offs, by number of rules",
    });
    this.alternatives = byId("alternatives")
      ? new Alternatives((place) => this.chooseAlternative(place)) : null;
    this.queued = false;
    this.addListeners();
  }

  start() {
    const unlimited = Object.fromEntries(LIMITS.map(({ parameter }) => [parameter, null]));
    return { ...unlimited, ...this.content.start };
  }

  show(group) {
    this.group = group;
    this.chosen = null;
    this.board.show(group, this.settings);
    const { scored_by: scoredBy } = group;
    if (this.alternatives) this.alternatives.show(group, scoredBy);
    this.plot();
    this.update();
    const first = group.winner !== null ? group.winner : this.ranking.order[0];
    this.choose(first === undefined ? null : first);
    this.placeSlider();
  }

  // --- settings ----------------------------------------------------------------------------

  addListeners() {
    for (const input of document.querySelectorAll("#weights input[type=radio]")) {
      input.addEventListener("change", () => {
        this.settings[input.name] = input.value;
        if (input.name === "score") { this.plot(); this.placeSlider(); }
        this.scheduleUpdate(true);
      });
    }
    for (const name of weightNames()) {
      const slider = byId(name), number = byId(name + "-number");
      slider.addEventListener("input", () => {
        // Rounded to three digits, so that the number field shows exactly the weight in use.
        this.settings[name] = Number((10 ** Number(slider.value)).toPrecision(3));
        number.value = this.settings[name];
        this.scheduleUpdate(true);
      });
      number.addEventListener("input", () => {
        const value = Number(number.value);
        const isValid = number.value !== "" && value > 0 && Number.isFinite(value);
        number.setAttribute("aria-invalid", String(!isValid));
        if (!isValid) return;
        this.settings[name] = value;
        slider.value = Math.log10(value);
        this.scheduleUpdate(true);
      });
    }
    for (const { id, parameter: name, smallest } of LIMITS) {
      byId(id).addEventListener("input", () => {
        const text = byId(id).value, value = text === "" ? null : Number(text);
        const isValid = !byId(id).validity.badInput && (value === null || smallest === null || value >= smallest);
        byId(id).setAttribute("aria-invalid", String(!isValid));
        if (!isValid) return;
        this.settings[name] = value;
        this.scheduleUpdate(true);
      });
    }
    byId("slider").addEventListener("input", () => this.slide(Number(byId("slider").value)));
    byId("weights").addEventListener("submit", (event) => event.preventDefault());
    byId("reset").addEventListener("click", () => {
      const before = this.settings.score;
      this.settings = this.start();
      if (before !== this.settings.score) this.plot();
      this.fill();
      this.update();
      const first = this.group.winner !== null ? this.group.winner : this.ranking.order[0];
      this.choose(first === undefined ? null : first, true);
      this.placeSlider();
    });
    this.fill();
  }

  fill() {
    for (const name of ["score", "completeness"]) {
      const input = document.querySelector(`input[name=${name}][value="${this.settings[name]}"]`);
      if (input) input.checked = true;
    }
    for (const name of weightNames()) {
      byId(name).value = Math.log10(this.settings[name]);
      byId(name + "-number").value = this.settings[name];
      byId(name + "-number").setAttribute("aria-invalid", "false");
    }
    for (const { id, parameter: name } of LIMITS) {
      byId(id).value = this.settings[name] === null ? "" : this.settings[name];
      byId(id).setAttribute("aria-invalid", "false");
    }
  }

  // Weights that the slider changes; without any, it steps along the front.
  get sliderWeights() {
    return formulaOf(this.settings.score) ? SCORES[this.settings.score].weights : [];
  }

  placeSlider() {
    const slider = byId("slider"), stepsAlongFront = !this.sliderWeights.length;
    slider.min = stepsAlongFront ? 0 : -1;
    slider.max = stepsAlongFront ? Math.max(0, this.front.length - 1) : 1;
    slider.step = stepsAlongFront ? 1 : 0.05;
    slider.value = stepsAlongFront ? this.nearestOnFront() : 0;
    byId("slider-box").hidden = !this.group.candidates.length || (stepsAlongFront && this.front.length < 2);
    this.updateSliderText();
  }

  nearestOnFront() {
    const size = this.chosen === null ? 0 : this.group.candidates[this.chosen].means.size;
    const gaps = this.front.map((place) => Math.abs(this.group.candidates[place].means.size - size));
    return this.front.includes(this.chosen) ? this.front.indexOf(this.chosen)
      : Math.max(0, gaps.indexOf(Math.min(...gaps)));
  }

  slide(position) {
    if (!this.sliderWeights.length) {
      this.choose(this.front[position], true);
      this.updateSliderText();
      return;
    }
    const { start, directions } = this.content;
    for (const name of this.sliderWeights) {
      const value = start[name] * 10 ** (position * (directions[name] || 0));
      this.settings[name] = Number(value.toPrecision(3));
    }
    this.fill();
    this.scheduleUpdate(true);
  }

  // Sets the text of the slider for screen readers.
  updateSliderText() {
    if (this.chosen === null) return;
    const candidate = this.group.candidates[this.chosen];
    byId("slider").setAttribute("aria-valuetext",
      `${countText(candidate.means.size)} rules, ${this.axis.text(this.axis.of(candidate))}`);
  }

  // Updates at most once per animation frame, even if the slider moves faster.
  scheduleUpdate(follow) {
    this.follow = this.follow || follow;
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.update();
      const { choice, order, scored } = this.ranking;
      const best = choice !== null ? choice : order[0];
      if (this.follow && best !== undefined && !scored[best].beyond) {
        if (best !== this.chosen) this.choose(best);
        this.updateSliderText();
      }
      this.follow = false;
    });
  }

  update() {
    const begin = performance.now();
    const kind = SCORES[this.settings.score];
    for (const name of weightNames()) {
      const used = kind.weights.includes(name);
      byId("field-" + name).hidden = !used;
      byId(name).setAttribute("aria-valuetext", String(this.settings[name]));
    }
    byId("completeness").disabled = !kind.completeness || !formulaOf(this.settings.score);
    byId("formula").textContent = formulaText(this.settings);
    this.ranking = rank(this.group, this.settings);
    this.board.fill(this.ranking, this.settings);
    for (const [place, node] of this.scatter.nodes) {
      node.classList.toggle("faded", this.ranking.scored[place].beyond);
    }
    this.updateVerdict();
    if (this.chosen !== null) this.onChoose(this.chosen, false);
    this.milliseconds = performance.now() - begin;
  }

  // --- texts -------------------------------------------------------------------------------

  describe(place) {
    const candidate = this.group.candidates[place];
    const params = paramsText(candidate.params);
    const score = tableNumber(this.ranking.scored[place].score, 4);
    return `${candidate.extractor}${params ? ` (${params})` : ""} with ${scoreLabel(this.settings)} ` +
      `${score}, ${tableNumber(candidate.means.size, 1)} rules on average`;
  }

  updateVerdict() {
    const { order, choice, scored } = this.ranking, winner = this.group.winner;
    const best = order[0];
    let text = "";
    if (best === undefined || Number.isNaN(scored[best].score)) text = "No candidate has this score.";
    else if (scored[best].beyond) text = "No candidate satisfies these limits; relax them.";
    byId("beyond").textContent = best !== undefined && scored[best].beyond ? text : "";
    if (text) {
      byId("verdict").textContent = text;
      this.announce(text);
      return;
    }
    const sentences = [element("strong", { text: `Best score: ${this.describe(best)}.` })];
    let extra = "";
    if (this.group.standard_errors !== null && choice !== null) {
      if (choice !== best) {
        extra += ` If the rules extracted from all rows are considered too, the best candidate with these weights is: ` +
          `${this.describe(choice)}.`;
      } else extra += " It remains the best if the rules extracted from all rows are considered too.";
    }
    if (winner !== null) {
      extra += ` ${winnerName(this.group, true)}, whose rules were saved, ` +
        (winner === best ? "has the best score." : winner === choice ? "is this last candidate."
          : `has rank ${scored[winner].rank} of ${order.length}.`);
    }
    byId("verdict").replaceChildren(...sentences, extra);
    this.announce(byId("verdict").textContent);
  }

  choose(place, moved = false) {
    this.chosen = place;
    this.board.choose(place);
    this.scatter.mark(place, this.group.winner);
    if (this.alternatives) this.alternatives.mark(place);
    if (place !== null) this.onChoose(place, true);
    if (moved && place !== null) this.announce(`Chosen: ${this.describe(place)}.`);
  }

  // Shows one of the offered lists, and moves a slider that steps along the front to it.
  chooseAlternative(place) {
    this.choose(place, true);
    if (!this.sliderWeights.length) this.placeSlider();
    this.updateSliderText();
  }

  // --- plot --------------------------------------------------------------------------------

  plot() {
    const { group } = this;
    this.axis = qualityAxis(group, this.settings);
    this.front = frontOf(group, this.axis);
    const onFront = new Set(this.front);
    const points = group.candidates.filter((c) => c.count && !Number.isNaN(this.axis.of(c)))
      .map((c) => ({ key: c.place, x: c.means.size, y: this.axis.of(c), front: onFront.has(c.place) }));
    byId("picture").hidden = !points.length;
    if (!points.length) return;
    const hundred = this.axis.greater && group.task !== "regression" && !SCORES[this.settings.score].recorded;
    const lines = [];
    // The model always agrees with itself, and its correctness on its training rows is too high.
    if (hundred && !this.axis.byModel && group.trained_here !== false && Number.isFinite(group.quality.accuracy)) {
      const value = 100 * group.quality.accuracy;
      lines.push({ y: value, text: `model ${percentText(value)}` });
    }
    this.scatter.show({
      points, lines, axis: { title: this.axis.title, most: hundred ? 100 : undefined },
    });
    this.scatter.mark(this.chosen, group.winner);
    byId("better").textContent = this.axis.greater ? "higher" : "lower";
  }

  tip(place) {
    const candidate = this.group.candidates[place], { means } = candidate;
    const lines = [`${countText(means.size)} rules, ${this.axis.text(this.axis.of(candidate))}`];
    if (means.completeness_instances < 1) {
      lines.push(`${percentText(100 * (1 - means.completeness_instances))} of 100 rows without a rule`);
    }
    return [...lines, candidate.extractor];
  }
}

function weightNames() {
  return [...new Set(Object.values(SCORES).flatMap((score) => score.weights))];
}

function formulaText(settings) {
  const score = SCORES[settings.score];
  const better = `${score.greater ? "greater" : "smaller"} is better`;
  if (!formulaOf(settings.score)) return `${score.label}, as the run recorded it; ${better}.`;
  return `${score.label} = ${score.text}; ${better}${score.weights.length ? "" : ", without weights"}. ` +
    `p: ${score.prediction}, r: rules${score.completeness
      ? `, c: completeness ${COMPLETENESS_TEXTS[settings.completeness]}.` : ". It does not depend on completeness."}`;
}

function scoreLabel(settings) {
  return SCORES[settings.score].label;
}
