// Helpers for elements and texts. Texts are always inserted as text, never as HTML.

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

// Writes a number like format_number in Python: four significant digits, no trailing zeros.
function shortNumber(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.max(0, 3 - magnitude);
  if (decimals > 12 || magnitude >= 16) return String(Number(value.toPrecision(4)));
  const text = value.toFixed(decimals);
  const trimmed = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return trimmed === "-0" ? "0" : trimmed;
}

// Writes a number for a column of a table, with the same number of digits for 0.5 and 50.
function tableNumber(value, digits = 3) {
  if (typeof value !== "number" || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (!Number.isFinite(value) || size >= 1e6 || (size > 0 && size < 10 ** -digits)) {
    return String(Number(value.toPrecision(digits)));
  }
  return value.toFixed(Math.max(0, digits - Math.max(0, String(Math.trunc(size)).length - 1)));
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// Writes a percentage without rounding it to 0 or 100.
function percentText(value) {
  if (!Number.isFinite(value)) return "–";
  const whole = Math.round(value);
  if (whole === 100 && value < 100 - 1e-9) return value < 99.9 ? value.toFixed(1) : "> 99.9";
  if (whole === 0 && value > 1e-9) return value >= 0.1 ? value.toFixed(1) : "< 0.1";
  return String(whole);
}

// Writes a mean count over folds, such as 3 or 3.4.
function countText(value) {
  return Math.abs(value - Math.round(value)) < 0.05 ? String(Math.round(value)) : value.toFixed(1);
}

function joinWords(texts, last = "and") {
  return texts.length < 2 ? texts.join("")
    : `${texts.slice(0, -1).join(", ")} ${last} ${texts[texts.length - 1]}`;
}

// Writes a value in full: a rounded one could lie on the other side of a bound.
function fullValue(value) {
  return isMissing(value) ? "missing" : String(value);
}

function paramsText(params) {
  const texts = Object.entries(params).map(([name, value]) => {
    const text = typeof value === "number" ? (Number.isInteger(value) ? String(value)
      : String(Number(value.toPrecision(3)))) : typeof value === "string" ? value
      : JSON.stringify(value);
    return `${name}=${text}`;
  });
  return texts.join(", ");
}

// Delays an action; another call during the delay replaces the earlier one.
function debounce(milliseconds, action) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

// Copies a text; pages opened from disk may lack the clipboard API.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    const area = element("textarea", { readonly: true, class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
