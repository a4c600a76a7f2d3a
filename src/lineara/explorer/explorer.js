"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const make = (tag, parent, looks, text) => {
  const element = parent.appendChild(document.createElement(tag));
  if (looks) element.className = looks;
  if (text !== undefined) element.textContent = text;
  return element;
};
// A line goes on, where it is too long, further in than it began.
const code = (row, text) => make("span", row, "code", text || " ").style.setProperty("--in", text.search(/\S|$/));
const counted = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
const METRICS = ["value", "gradient", "tape", "peak"];
let choice = 0, tab = "", line = -1, pinned = false;

const stages = () => data.choices[choice].stages;
const tabs = [...Object.keys(data.choices[0].stages), "diagram", "sparsity", "kinks"];

// --- your lines -------------------------------------------------------------------------------------

const bytes = n => n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(2)} MB` : n >= 1e3 ? `${(n / 1e3).toFixed(2)} kB` : `${n} B`;
const said = (metric, n) => metric < 2 ? `${n.toLocaleString("en")} operations` : bytes(n);
const texts = new Map();

function source() {
  const box = at("source"), metric = Number(at("metric").value), costs = data.choices[choice].costs;
  const of = l => costs[l]?.[metric] ?? 0;
  const every = data.sources.flatMap(([, , lines]) => lines.map(([, l]) => l));
  const top = Math.max(1, ...every.map(of)), sum = metric === 3 ? top : Math.max(1, every.reduce((s, l) => s + of(l), 0));
  box.replaceChildren();
  for (const [file, first, lines] of data.sources) {
    make("div", box, "file", file).setAttribute("role", "presentation");
    lines.forEach(([text, l], i) => {
      const row = make("div", box, "row"), n = of(l);
      row.dataset.line = l;
      row.id = `line-${l}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      make("span", row, "n", first + i);
      const cost = make("span", row, "cost");
      if (n) {
        make("i", cost).style.width = `${100 * n / top}%`;
        cost.title = `${said(metric, n)}, ${Math.round(100 * n / sum)} %`;
        row.setAttribute("aria-label", `line ${first + i}: ${text.trim()}; ${said(metric, n)}`);
      } else row.setAttribute("aria-label", `line ${first + i}: ${text.trim()}`);
      row.classList.toggle("hot", n > 0 && n >= 0.5 * top);
      code(row, text);
      texts.set(l, `${file}:${first + i}`);
    });
  }
  const slow = [...new Set(every)].filter(of).sort((a, b) => of(b) - of(a)).slice(0, 3);
  at("slow").replaceChildren(...slow.map(l => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${texts.get(l)}  ${Math.round(100 * of(l) / sum)} %`;
    button.addEventListener("click", () => { pinned = true; mark(l, true); });
    return button;
  }));
  marks();
}

// --- what becomes of them ---------------------------------------------------------------------------

function show(name) {
  tab = name;
  const panel = at("panel");
  panel.replaceChildren();
  for (const button of at("tabs").children) {
    const on = button.textContent === name;
    button.setAttribute("aria-selected", String(on));
    button.tabIndex = on ? 0 : -1;
  }
  panel.setAttribute("aria-label", name);
  if (name === "diagram") diagram(panel);
  else if (name === "sparsity") sparsity(panel);
  else if (name === "kinks") kinks(panel);
  else for (const [text, l] of stages()[name]) {
    const row = make("div", panel, "row");
    row.dataset.line = l;
    make("span", row, "n", l < 0 ? "" : texts.get(l)?.split(":").pop() ?? "");
    code(row, text);
  }
  marks();
  reveal();
}

function diagram(panel) {
  if (typeof data.diagram === "string") { make("p", panel, "", data.diagram); return; }
  const [shapes, width, height] = data.diagram;
  panel.innerHTML = `<svg class="lineara" role="img" aria-label="String diagram" width="${width + 24}" height="${height + 24}" viewBox="-12 -12 ${width + 24} ${height + 24}">${shapes.map(([s]) => s).join("")}</svg>`;
  [...panel.firstChild.children].forEach((element, i) => { element.dataset.line = shapes[i][1]; });
}

function sparsity(panel) {
  if (typeof data.spy === "string") { make("p", panel, "", data.spy); return; }
  const [m, n, step, count, places] = data.spy, rows = Math.ceil(m / step), columns = Math.ceil(n / step);
  const scale = Math.max(1, Math.min(24, Math.floor(420 / Math.max(rows, columns))));
  make("p", panel, "", `The derivative has ${counted(m, "row")} and ${counted(n, "column")}; ${counted(count, "place")}, ${Number((100 * count / (m * n)).toPrecision(count < m * n ? 2 : 3))} %, may be other than 0${step > 1 ? `; a dot is ${step} by ${step}` : ""}.`);
  const canvas = make("canvas", panel);
  canvas.width = columns * scale; canvas.height = rows * scale;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Where the derivative may be other than zero");
  const c = canvas.getContext("2d");
  c.fillStyle = getComputedStyle(document.body).getPropertyValue("--blue").trim();
  const gap = scale > 4 ? 1 : 0;
  for (const [i, j] of places) c.fillRect(j * scale, i * scale, scale - gap, scale - gap);
}

function kinks(panel) {
  if (typeof data.kinks === "string") { make("p", panel, "", data.kinks); return; }
  if (!data.kinks.length) { make("p", panel, "", "No point without a derivative was met in a run at these arguments."); return; }
  const table = make("table", panel), head = make("tr", table);
  for (const name of ["kink", "where", "times"]) make("th", head, "", name);
  for (const hit of data.kinks) { const row = make("tr", table); for (const cell of hit) make("td", row, "", cell); }
}

// --- a line, and what it became -----------------------------------------------------------------------

function marks() {
  for (const element of document.querySelectorAll("[data-line]")) {
    const on = line >= 0 && Number(element.dataset.line) === line;
    element.classList.toggle("on", on);
    if (element.getAttribute("role") === "option") {
      element.setAttribute("aria-selected", String(on));
      element.classList.toggle("pinned", on && pinned);
    }
  }
  if (line >= 0) at("source").setAttribute("aria-activedescendant", `line-${line}`);
}

function reveal() {
  const panel = at("panel"), found = panel.querySelector(".on");
  if (!found) return;
  const a = found.getBoundingClientRect(), b = panel.getBoundingClientRect();
  if (a.top < b.top || a.bottom > b.bottom) panel.scrollTop += a.top - b.top - b.height / 3;
  if (a.left < b.left || a.right > b.right) panel.scrollLeft += a.left - b.left - b.width / 3;
}

function tell() {
  const { costs, said: whole } = data.choices[choice];
  if (line < 0) { at("said").textContent = whole; return; }
  const count = name => stages()[name].filter(([, l]) => l === line).length, c = costs[line] ?? [0, 0, 0, 0];
  at("said").textContent = `${texts.get(line) ?? ""}: ${METRICS.map((m, i) => `${m} ${said(i, c[i])}`).join(", ")}; ` +
    Object.keys(stages()).map(name => `${name} ${count(name)}`).join(", ");
}

function mark(to, scroll) {
  line = to;
  marks();
  tell();
  if (!scroll) return;
  reveal();
  document.getElementById(`line-${line}`)?.scrollIntoView({ block: "nearest" });
}

for (const id of ["source", "panel"]) {
  at(id).addEventListener("pointerover", e => {
    const found = e.target.closest("[data-line]");
    if (!pinned && found && Number(found.dataset.line) >= 0) { mark(Number(found.dataset.line), false); if (id === "source") reveal(); }
  });
  at(id).addEventListener("pointerleave", () => { if (!pinned) mark(-1, false); });
  at(id).addEventListener("click", e => {
    const found = e.target.closest("[data-line]"), to = found ? Number(found.dataset.line) : -1;
    pinned = to >= 0 && !(pinned && to === line);
    mark(to, true);
  });
}
at("source").addEventListener("keydown", e => {
  const rows = [...at("source").querySelectorAll(".row")], i = rows.findIndex(r => Number(r.dataset.line) === line);
  const to = { ArrowDown: i + 1, ArrowUp: Math.max(0, i - 1), Home: 0, End: rows.length - 1 }[e.key];
  if (e.key === "Escape") { pinned = false; mark(-1, false); }
  if (to === undefined || !rows[Math.min(to, rows.length - 1)]) return;
  e.preventDefault();
  pinned = true;
  mark(Number(rows[Math.min(to, rows.length - 1)].dataset.line), true);
});
for (const name of tabs) {
  const button = make("button", at("tabs"), "", name);
  button.type = "button";
  button.setAttribute("role", "tab");
  button.addEventListener("click", () => show(name));
}
at("tabs").addEventListener("keydown", e => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!by) return;
  const to = (tabs.indexOf(tab) + by + tabs.length) % tabs.length;
  show(tabs[to]);
  at("tabs").children[to].focus();
});
at("metric").addEventListener("change", source);
at("policy").max = data.choices.length - 1;
function choose() {
  choice = Number(at("policy").value);
  const { policy, said } = data.choices[choice];
  at("chosen").textContent = policy;
  at("policy").setAttribute("aria-valuetext", `${policy}: ${said}`);
  source();
  show(tab || tabs[0]);
  tell();
}
at("policy").addEventListener("input", choose);
choose();
