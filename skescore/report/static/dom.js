// Small tools for the page. Texts only ever go in as text, never as HTML.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// As skescore.rules.formatting.format_number: four significant digits, no trailing zeros.
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

// For columns of a table: as many digits for 0.5 as for 50.
function fixed(value, digits = 3) {
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

// So many of 100; 100 and 0 only where it is all or none.
function ofHundred(value) {
  if (!Number.isFinite(value)) return "–";
  const whole = Math.round(value);
  if (whole === 100 && value < 100 - 1e-9) return value < 99.9 ? value.toFixed(1) : "> 99.9";
  if (whole === 0 && value > 1e-9) return value >= 0.1 ? value.toFixed(1) : "< 0.1";
  return String(whole);
}

// A mean of folds is seldom whole: 3, or 3.4.
function countText(value) {
  return Math.abs(value - Math.round(value)) < 0.05 ? String(Math.round(value)) : value.toFixed(1);
}

function listed(texts, last = "and") {
  return texts.length < 2 ? texts.join("")
    : `${texts.slice(0, -1).join(", ")} ${last} ${texts[texts.length - 1]}`;
}

// In full: a value just beyond a bound would round to the bound.
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

// A later call before its time takes the place of an earlier one.
function afterwards(milliseconds, action) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

// Copy a text; a page opened from disk may lack the modern way.
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
