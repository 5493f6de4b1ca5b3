// Shows the page of a report in a cell, and passes messages between it and Python.

const SHARED = ["candidate", "log", "base"];

// The page follows the theme of the notebook, which may differ from that of the system.
function colorScheme(el) {
  const theme = el.closest("[data-jp-theme-light]");
  if (theme) return theme.dataset.jpThemeLight === "false" ? "dark" : "light";
  const { classList } = document.body;
  if (classList.contains("vscode-light") || classList.contains("vscode-high-contrast-light")) return "light";
  if (classList.contains("vscode-dark") || classList.contains("vscode-high-contrast")) return "dark";
  return document.documentElement.getAttribute("theme") || "light dark";
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "Rules";
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.setAttribute("allow", "clipboard-write");
  frame.style.cssText = "width: 100%; height: 30rem; border: 0;";
  frame.srcdoc = model.get("page");

  const share = () => frame.contentWindow && frame.contentWindow.postMessage(
    { skescore: Object.fromEntries(SHARED.map((name) => [name, model.get(name)])) }, "*");
  const receive = ({ source, data }) => {
    if (source !== frame.contentWindow || !data || !data.skescore) return;
    const { ready, height, candidate, log } = data.skescore;
    if (ready) share();
    if (height) frame.style.height = `${Math.ceil(height)}px`;
    if (candidate === undefined && log === undefined) return;
    if (candidate !== undefined) model.set({ candidate, last_change: "candidate" });
    if (log !== undefined) model.set({ log, last_change: "log" });
    model.save_changes();
  };
  window.addEventListener("message", receive);
  for (const name of SHARED) model.on(`change:${name}`, share);
  el.append(frame);
  frame.style.colorScheme = colorScheme(el);
  requestAnimationFrame(() => { frame.style.colorScheme = colorScheme(el); });
  return () => {
    window.removeEventListener("message", receive);
    for (const name of SHARED) model.off(`change:${name}`, share);
  };
}

export default { render };
