// Connects a page in a notebook with Python: choices, edits and the height of the page.

class Notebook {
  constructor() {
    this.place = null;
    window.addEventListener("message", ({ source, data }) => {
      if (source === window.parent && data && data.skescore) this.receive(data.skescore);
    });
    new ResizeObserver(() => this.send({ height: document.documentElement.offsetHeight })).observe(document.body);
    if (page.editor) page.editor.onEdit = () => this.send({ log: page.editor.log.toJson() });
  }

  send(message) {
    window.parent.postMessage({ skescore: message }, "*");
  }

  // Reports the candidate that the user chose.
  chose(place) {
    if (place === this.place) return;
    this.place = place;
    this.send({ candidate: place });
  }

  // Applies changes from Python or from the same widget in another cell.
  receive({ candidate, log, base }) {
    if (page.tradeOff && candidate !== null && candidate !== this.place) {
      this.place = candidate;
      page.tradeOff.choose(candidate);
    }
    if (!page.editor) return;
    const { steps } = log ? JSON.parse(log) : { steps: [] };
    const last = steps.length ? steps[steps.length - 1].sha256 : page.editor.log.start;
    if (last !== page.editor.log.seal) page.editor.restore(steps, base);
  }
}
