"use strict";
const film = JSON.parse(document.getElementById("film").textContent);
const at = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg", LAST = film.shots.length - 1;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const stage = at("stage"), svg = at("picture-of-step"), world = at("world");
const READ = 9 / 12;  // the scale below which a label has less than 9 pixels
const LONG = 1500;  // of a wire: its dashes take more time to draw than all else
const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(svg).fontFamily;
const widths = new Map();

// How wide a text is, without a look at the page, which would lay it out.
function widthOf(text, size, style = "") {
  const font = `${style} ${size}px ${family}`, key = font + text;
  if (!widths.has(key)) { pen.font = font; widths.set(key, pen.measureText(text).width); }
  return widths.get(key);
}
let step = 0, timer = 0, started = false;

// --- what there is at a step ----------------------------------------------------------------------

const names = ["key", "within", "looks", "label", "title", "ins", "outs", "x", "y", "w", "h", "back", "pi", "po"];
const block = row => Object.fromEntries(row.map((v, i) => [names[i], v]));
const wire = ([key, looks, title, from, to, bends]) => ({ key, looks, title, from, to, bends: bends ?? [] });
let model = { blocks: new Map(), wires: new Map(), at: -1 };
const kept = [];  // models, one in 64 steps

function apply(model, shot) {
  for (const key of shot.gone ?? []) model.blocks.delete(key);
  for (const key of shot.cut ?? []) model.wires.delete(key);
  for (const row of shot.put ?? []) model.blocks.set(row[0], block(row));
  for (const row of shot.wire ?? []) model.wires.set(row[0], wire(row));
  model.at += 1;
}

function modelAt(to) {
  if (model.at > to) {
    const start = kept[to >> 6];
    model = start ? { blocks: new Map(start.blocks), wires: new Map(start.wires), at: start.at }
      : { blocks: new Map(), wires: new Map(), at: -1 };
  }
  while (model.at < to) {
    apply(model, film.shots[model.at + 1]);
    if (model.at % 64 === 0) kept[model.at >> 6] ??= { blocks: new Map(model.blocks), wires: new Map(model.wires), at: model.at };
  }
}

// --- where things are -----------------------------------------------------------------------------

const DOT = /\b(copy|drop)\b/, FRAME = /\b(blue|orange|green)\b/, AROUND = /\baround\b/;
const isLeft = b => b.looks.includes("from") !== Boolean(b.back);  // of an end: whether its name is on its left
const isPort = b => b.looks.startsWith("port");
let drawn = new Map();   // key -> what is drawn of a block: its rectangle now, and its element
let lines = new Map();   // key -> a wire, and its element
let shut = new Set();    // keys of boxes that are shut
const joined = new Map(), lineGroups = new Map();  // block -> the one that stands for its line, and back

const isLoop = b => b.label === "each round", isBranch = b => /^(if .*|else)$/.test(b.label);
const isBox = b => AROUND.test(b.looks) && !FRAME.test(b.looks);

// The outermost box that is shut around a block, the block that stands for its line, or nothing.
function hiddenIn(key) {
  let found = joined.get(key) ?? null;
  for (let b = model.blocks.get(key)?.within; b; b = model.blocks.get(b)?.within) if (shut.has(b)) found = b;
  return found;
}

const hides = key => { const inner = hiddenIn(key); return Boolean(inner) && inner !== key; };
const codeOf = key => lineOf(model.blocks.get(key)).replace(/^.*?:\d+: /, "").replace(/^(.{99}).+/, "$1…");
const lineOf = b => b?.title.split("\n")[1] ?? "";

// What one line of the user's makes, as far as wires join it, is drawn as one block.
function joinLines() {
  const root = new Map(), groups = new Map();
  const find = key => { while (root.get(key) !== key) { root.set(key, root.get(root.get(key))); key = root.get(key); } return key; };
  const place = b => `${b.within}|${b.back}|${lineOf(b)}`;
  for (const b of model.blocks.values())
    if (lineOf(b) && !isPort(b) && !AROUND.test(b.looks) && !FRAME.test(b.looks)) root.set(b.key, b.key);
  for (const { from: [a], to: [b] } of model.wires.values())
    if (root.has(a) && root.has(b) && place(model.blocks.get(a)) === place(model.blocks.get(b))) root.set(find(a), find(b));
  for (const key of root.keys()) { const top = find(key); groups.has(top) ? groups.get(top).push(key) : groups.set(top, [key]); }
  for (const keys of groups.values()) {
    const head = keys.findLast(k => shapeOf(model.blocks.get(k)) === "rect");
    if (head && keys.length > 1) { lineGroups.set(head, keys); for (const k of keys) joined.set(k, head); }
  }
}

// Where columns are when a line is a block: as wide as its text asks, and no wider where nothing is shown.  What is
// beside another stays beside it, since all that is there moves by one scale.
let across = x => x;

function stretch(rects) {
  across = x => x;
  if (!lineGroups.size) return;
  const nodes = [...rects].filter(([key]) => !hides(key) && !AROUND.test(model.blocks.get(key).looks));
  const cuts = [...new Set([...rects].filter(([key]) => !hides(key)).flatMap(([, r]) => [r.x, r.x + r.w]))].sort((a, b) => a - b);
  const index = new Map(cuts.map((x, i) => [x, i])), covered = new Set(), scale = cuts.map(() => 1);
  for (const [key, r] of nodes) {
    const by = lineGroups.has(key) ? (widthOf(codeOf(key), 12) + 14) / r.w : 1;
    for (let i = index.get(r.x); i < index.get(r.x + r.w); i++) { covered.add(i); scale[i] = Math.max(scale[i], by); }
  }
  const to = [cuts[0]];
  for (let i = 1; i < cuts.length; i++) {
    const long = cuts[i] - cuts[i - 1];
    to.push(to[i - 1] + (covered.has(i - 1) ? long * scale[i - 1] : Math.min(long, 40)));
  }
  across = x => {
    let low = 0, high = cuts.length - 1;
    if (x <= cuts[0]) return x;
    if (x >= cuts[high]) return to[high] + x - cuts[high];
    while (high - low > 1) { const mid = (low + high) >> 1; cuts[mid] <= x ? low = mid : high = mid; }
    return to[low] + (to[high] - to[low]) * (x - cuts[low]) / (cuts[high] - cuts[low]);
  };
  for (const [key, r] of rects) {
    const x = across(r.x), end = across(r.x + r.w), outer = AROUND.test(model.blocks.get(key).looks);
    const w = outer ? end - x : lineGroups.has(key) ? widthOf(codeOf(key), 12) + 14 : Math.min(r.w, end - x);
    rects.set(key, { ...r, x: (x + end - w) / 2, w });
  }
}

// Frames are around what they hold.
function rectangles() {
  const rects = new Map(), held = new Map();
  for (const b of model.blocks.values()) {
    if (b.x === undefined) { held.set(b.key, []); continue; }
    rects.set(b.key, { x: b.x, y: b.y, w: b.w, h: b.h });
  }
  stretch(rects);
  for (const b of model.blocks.values()) if (held.has(b.within) && rects.has(b.key)) held.get(b.within).push(rects.get(b.key));
  for (const [key, inner] of held) {
    if (!inner.length) continue;
    const x = Math.min(...inner.map(r => r.x)) - 9, y = Math.min(...inner.map(r => r.y)) - 22;
    rects.set(key, { x, y, w: Math.max(...inner.map(r => r.x + r.w)) + 9 - x, h: Math.max(...inner.map(r => r.y + r.h)) + 8 - y });
  }
  return rects;
}

// Where a wire ends at a block: the point, and whether it runs on to the right there.
function endAt([key, side, i], into) {
  const inside = hiddenIn(key), b = model.blocks.get(inside ?? key), item = drawn.get(inside ?? key);
  if (!b || !item) return null;
  const { x, y, w, h } = item.now;
  if (inside) return [into === Boolean(b.back) ? x + w : x, y + h / 2, b.back ? -1 : 1];
  if (isPort(b) || DOT.test(b.looks)) return [x + w / 2, y + h / 2, b.back ? -1 : 1];
  if (side === "r") return [x + w / 2, into ? y : y + h, 0];
  const n = side === "i" ? b.ins : b.outs, given = side === "i" ? b.pi : b.po;
  const high = given ? given[i] * h / b.h : isBox(b) ? Math.min(h / 2, 26) : h * (i + 1) / (n + 1);
  const left = (side === "i") !== Boolean(b.back);
  return [left ? x : x + w, y + (FRAME.test(b.looks) ? h / 2 : high), b.back ? -1 : 1];
}

function course(line) {
  const a = endAt(line.from, false), b = endAt(line.to, true);
  if (!a || !b || (a[0] === b[0] && a[1] === b[1])) return "";
  // GREEN's nodes are entered where their values came from
  const green = line.to[1] === "o", sent = line.from[1] === "i";
  let d1 = sent ? -1 : a[2], d2 = green ? -1 : b[2];
  if (line.looks.includes("kept") || d1 === 0 || d2 === 0)
    return `M${a[0]} ${a[1]}C${a[0]} ${(a[1] + b[1]) / 2} ${b[0]} ${(a[1] + b[1]) / 2} ${b[0]} ${b[1]}`;
  let path = `M${a[0]} ${a[1]}`, [x, y] = a;
  const curve = (x2, y2, s, t) => {
    const away = Math.abs(x2 - x) / 2, k = (x2 - x) * s > 0 ? away : Math.max(14, Math.min(60, away));
    const m = (x2 - x) * t > 0 ? away : Math.max(14, Math.min(60, away));
    path += `C${x + s * k} ${y} ${x2 - t * m} ${y2} ${x2} ${y2}`;
    x = x2; y = y2;
  };
  const n = line.bends;
  if (!hiddenIn(line.from[0]) && !hiddenIn(line.to[0]))
    for (let i = 0; i < n.length; i += 3) {
      const way = Math.sign(n[i + 1] - n[i]) || d1;
      curve(across(n[i]), n[i + 2], d1, way);
      x = across(n[i + 1]); d1 = way;
      path += `L${x} ${n[i + 2]}`;
    }
  curve(b[0], b[1], d1, d2);
  return path;
}

// --- elements -------------------------------------------------------------------------------------

const make = (tag, parent, looks) => {
  const element = parent.appendChild(document.createElementNS(SVG, tag));
  if (looks) element.setAttribute("class", looks);
  return element;
};

// Writes only what is not so already: the browser styles and draws anew what is written.
const set = (element, name, value) => { if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value); };

function shapeOf(b) {
  if (isPort(b) || DOT.test(b.looks)) return "circle";
  return /\b(pack|unpack|sel|route)\b/.test(b.looks) && !AROUND.test(b.looks) ? "polygon" : "rect";
}

function build(item, b) {
  const group = item.element;
  group.replaceChildren();
  item.shape = make(shapeOf(b), group);
  make("title", group).textContent = b.title;
  item.label = b.label || isBox(b) || FRAME.test(b.looks) ? make("text", group) : null;
  const dataset = group.dataset;
  dataset.key = b.key;
  const sent = film.steps[b.key], button = sent !== undefined || isBox(b);
  for (const name of ["role", "tabindex", "aria-label", "aria-expanded"]) group.removeAttribute(name);
  delete dataset.step;
  if (button) {
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", "0");
    group.setAttribute("aria-label", `${b.label || b.title}${isBox(b) ? ", a box" : ""}`);
    if (sent !== undefined) dataset.step = sent;
    else dataset.box = b.key;
  }
}

function dress(item, b) {
  const { fires, made } = film.shots[step], parent = model.blocks.get(b.within);
  const held = parent && FRAME.exec(parent.looks), group = lineGroups.get(b.key), closed = shut.has(b.key) || Boolean(group);
  const here = key => (hiddenIn(key) ?? key) === b.key, mark = here(fires) ? " fires" : made?.some(here) ? " new" : "";
  const looks = isPort(b) ? "port" : b.looks + mark + (closed ? " folded shut" : "");
  set(item.shape, "class", closed ? looks.replace(/\baround\b/, "") : looks);
  set(item.element, "class", `${held ? "held " + held[0] : ""}${film.steps[b.key] === undefined ? "" : " step"}`);
  if (isBox(b)) set(item.element, "aria-expanded", String(!closed));
  if (!item.label) return;
  const frame = FRAME.test(b.looks), kind = frame ? ` ${FRAME.exec(b.looks)[0]}` : "";
  const count = group ? "" : closed ? ` ⋯ ${[...model.blocks.values()].filter(o => inside(o, b.key) && !isPort(o)).length}` : "";
  const text = frame ? { blue: "BLUE", orange: "ORANGE →", green: "◂ GREEN" }[kind.trim()] : group ? codeOf(b.key) : b.label + count;
  if (item.label.textContent !== text) item.label.textContent = text;
  const head = (AROUND.test(b.looks) || frame) && !closed;
  set(item.label, "class", isPort(b) ? `name ${isLeft(b) ? "left" : ""}` : head ? `head${kind}` : "label");
}

function inside(b, key) {
  for (let w = b.within; w; w = model.blocks.get(w)?.within) if (w === key) return true;
  return false;
}

function put(item, b) {
  const { x, y, w, h } = item.now, shape = item.shape;
  if (shape.tagName === "circle") {
    set(shape, "cx", x + w / 2); set(shape, "cy", y + h / 2);
    set(shape, "r", isPort(b) ? 2.2 : /\bcopy\b/.test(b.looks) ? 3.6 : 4);
  } else if (shape.tagName === "polygon") {
    const cut = Math.min(5, h / 5), many = /\b(pack|sel)\b/.test(b.looks) !== Boolean(b.back), l = many ? 0 : cut, r = many ? cut : 0;
    set(shape, "points", [x, y + l, x + w, y + r, x + w, y + h - r, x, y + h - l].join(" "));
  } else {
    for (const [name, v] of [["x", x], ["y", y], ["width", w], ["height", h]]) set(shape, name, v);
    set(shape, "rx", /\bconst\b/.test(b.looks) ? h / 2 : AROUND.test(b.looks) || FRAME.test(b.looks) ? 9 : 4);
  }
  if (!item.label) return;
  const looks = item.label.getAttribute("class");
  const left = looks.includes("left");
  const [tx, ty] = looks.startsWith("head") ? [x + 9 + (item.shift ?? 0), y + 11] : looks.startsWith("name") ? [x + (left ? -5 : 5), y] : [x + w / 2, y + h / 2];
  set(item.label, "x", tx); set(item.label, "y", ty);
}

// --- drawing: only what the view shows has elements -------------------------------------------------

let view = { x: 0, y: 0, s: 1 }, moving = 0;

let size = null;  // of the stage: asked for once, since to ask lays the page out
function room() {  // `open` is the height above the buttons
  if (!size) {
    const w = stage.clientWidth || 800, h = stage.clientHeight || 500;
    size = { w, h, open: Math.min(h, at("view").offsetTop || h) };
  }
  return size;
}
new ResizeObserver(() => { size = null; }).observe(stage);

// A rectangle with the name of the block, which stands beside it where it is an end of a wire.
function named(b, r) {
  if (!b || !isPort(b) || !b.label) return r;
  const w = 5 + widthOf(b.label, 10.5, "italic");
  return { x: isLeft(b) ? r.x - w : r.x, y: r.y - 6, w: r.w + w, h: r.h + 12 };
}

function whole() {
  let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
  for (const [key, item] of drawn) {
    const r = named(model.blocks.get(key), item.to);
    x0 = Math.min(x0, r.x); y0 = Math.min(y0, r.y); x1 = Math.max(x1, r.x + r.w); y1 = Math.max(y1, r.y + r.h);
  }
  return x0 > x1 ? { x: 0, y: 0, w: 100, h: 60 } : { x: x0 - 14, y: y0 - 14, w: x1 - x0 + 28, h: y1 - y0 + 28 };
}

let seen = { x0: 0, y0: 0, x1: 0, y1: 0 };  // what has elements: what the view shows, and a quarter of it on each side
const shown = r => r.x + r.w > seen.x0 && r.x < seen.x1 && r.y + r.h > seen.y0 && r.y < seen.y1;

function region(around) {
  const { w, h } = room(), { x, y, s } = view;
  return { x0: (-x - w * around) / s, y0: (-y - h * around) / s, x1: (w - x + w * around) / s, y1: (h - y + h * around) / s };
}

// Whether a view shows what has no element, or little of what has one.
function stale() {
  const v = region(0);
  return v.x0 < seen.x0 || v.y0 < seen.y0 || v.x1 > seen.x1 || v.y1 > seen.y1 || seen.x1 - seen.x0 > 4 * (v.x1 - v.x0);
}

function setBlocks() {
  const rects = rectangles(), focused = document.activeElement?.dataset?.key;
  for (const [key, item] of drawn) if (!rects.has(key)) { item.gone = true; }
  for (const b of model.blocks.values()) {
    const to = rects.get(b.key);
    if (!to) continue;
    let item = drawn.get(b.key);
    if (!item || item.gone) {
      item?.element?.remove();
      item = { now: to, from: to, to, born: true };
      drawn.set(b.key, item);
    }
    item.from = item.now; item.to = to;
  }
  for (const [key, item] of [...drawn]) if (item.gone) { item.element?.remove(); drawn.delete(key); }
  render(true);
  if (focused && document.activeElement?.dataset?.key !== focused) drawn.get(focused)?.element?.focus?.({ preventScroll: true });
}

function render(dressed) {
  const under = at("under"), over = at("over"), wires = at("wires");
  seen = region(0.25);
  for (const [key, item] of drawn) {
    const b = model.blocks.get(key), outer = AROUND.test(b.looks) || FRAME.test(b.looks);
    const visible = (shown(named(b, item.now)) || shown(named(b, item.to))) && !hides(key);
    if (!visible) { item.element?.remove(); item.element = null; continue; }
    const looks = `${b.looks}|${b.label}`;
    if (!item.element) { item.element = make("g", outer ? under : over); item.looks = ""; }
    const fresh = item.looks !== looks;
    if (fresh) { build(item, b); item.looks = looks; }
    if (dressed || fresh) { dress(item, b); put(item, b); }
  }
  const order = [...under.children].sort((a, b) => depth(a.dataset.key) - depth(b.dataset.key));
  if (order.some((e, i) => e !== under.children[i])) under.append(...order);
  for (const [key, line] of lines) if (!model.wires.has(key)) { line.element?.remove(); lines.delete(key); }
  for (const w of model.wires.values()) {
    let line = lines.get(w.key);
    if (!line || line.wire !== w) { line?.element?.remove(); line = { wire: w }; lines.set(w.key, line); }
    const a = drawn.get(w.from[0])?.now, b = drawn.get(w.to[0])?.now, inner = hiddenIn(w.from[0]);
    const r = a && b && union([a, b], 0), visible = r && !(inner && inner === hiddenIn(w.to[0])) && shown(r);
    if (!visible) { line.element?.remove(); line.element = null; continue; }
    const fresh = !line.element;
    if (fresh) {
      line.element = make("path", wires, r.w + r.h > LONG ? `${w.looks} long` : w.looks);
      make("title", line.element).textContent = w.title;
    }
    if (dressed || fresh) set(line.element, "d", course(w));
  }
  heads();
}

// A head that would lie on one further out stands beside it, or has no room.
function heads() {
  const taken = [], gap = 8 * up;
  for (const element of at("under").children) {
    const key = element.dataset.key, item = drawn.get(key), r = item.to, b = model.blocks.get(key);
    if (!item.label || !item.label.getAttribute("class").startsWith("head")) continue;
    const w = widthOf(item.label.textContent, 11) * up, h = 14 * up, y = r.y + 11 - h / 2;
    let x = r.x + 9;
    const below = () => taken.find(t => x < t.x + t.w && t.x < x + w && y < t.y + t.h && t.y < y + h);
    for (let t; (t = below());) x = t.x + t.w + gap;
    const fits = x === r.x + 9 || x + w <= r.x + r.w;
    item.shift = fits ? x - r.x - 9 : 0;
    set(item.label, "visibility", fits ? "visible" : "hidden");
    put(item, b);
    if (fits) taken.push({ x, y, w, h });
  }
}

const depth = key => { let n = 0; for (let b = model.blocks.get(key)?.within; b; b = model.blocks.get(b)?.within) n++; return n; };

function animate(go) {
  cancelAnimationFrame(moving);
  const start = performance.now(), length = go && !still.matches ? 450 : 0;
  const changing = [...drawn].filter(([, i]) => i.born || ["x", "y", "w", "h"].some(n => i.from[n] !== i.to[n]));
  const keys = new Set(changing.map(([k]) => k));
  const touched = [...lines.values()].filter(l => keys.has(l.wire.from[0]) || keys.has(l.wire.to[0]));
  const tick = now => {
    const t = length ? Math.max(0, Math.min(1, (now - start) / length)) : 1, e = t * t * (3 - 2 * t);
    for (const [key, item] of changing) {
      if (drawn.get(key) !== item) continue;
      const mix = n => item.from[n] + (item.to[n] - item.from[n]) * e;
      item.now = t === 1 ? item.to : { x: mix("x"), y: mix("y"), w: mix("w"), h: mix("h") };
      if (item.element) {
        put(item, model.blocks.get(key));
        if (item.born) item.element.style.opacity = t < 1 ? e : "";
      }
      if (t === 1) item.born = false;
    }
    for (const line of touched) if (line.element) set(line.element, "d", course(line.wire));
    if (t < 1) moving = requestAnimationFrame(tick);
    else map();
  };
  tick(start);
}

// --- the view ---------------------------------------------------------------------------------------

let looking = 0, waits = 0, up = 1;  // how much larger heads are than all else: none of their text is too small

function look(next, smooth) {
  cancelAnimationFrame(looking);
  const from = { ...view }, start = performance.now(), length = smooth && !still.matches ? 350 : 0;
  const tick = now => {
    const t = length ? Math.min(1, Math.max(0, (now - start) / length)) : 1, e = t * t * (3 - 2 * t);
    view = { x: from.x + (next.x - from.x) * e, y: from.y + (next.y - from.y) * e, s: from.s * (next.s / from.s) ** e };
    world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.s})`);
    set(world, "class", view.s < READ ? "far" : "");
    const larger = 2 ** (Math.ceil(4 * Math.log2(Math.max(1, 10 / 11 / view.s))) / 4);  // in few sizes: each is a new style
    if (larger !== up) { up = larger; at("under").style.setProperty("--up", up); heads(); }
    if (!waits) waits = requestAnimationFrame(() => { waits = 0; if (stale()) render(false); mapView(); });
    if (t < 1) looking = requestAnimationFrame(tick);
  };
  tick(start);
}

function toRectangle(r, most) {
  const { w, open: h } = room(), s = Math.min(w / r.w, h / r.h, most);
  return { s, x: w / 2 - s * (r.x + r.w / 2), y: h / 2 - s * (r.y + r.h / 2) };
}

function zoom(by, px = room().w / 2, py = room().h / 2, smooth = false) {
  const s = Math.max(0.02, Math.min(4, view.s * by)), k = s / view.s;
  look({ s, x: px - k * (px - view.x), y: py - k * (py - view.y) }, smooth);
}

const fitAll = smooth => look(toRectangle(whole(), 1.5), smooth);

function active() {
  const { fires, made } = film.shots[step];
  const found = [fires, ...(made ?? [])].filter(Boolean).map(k => hiddenIn(k) ?? k).map(k => drawn.get(k)?.to).filter(Boolean);
  const small = found.filter(r => r.w < 400);
  return (small.length ? small : found).slice(0, 1).concat(small.slice(1).filter(r => Math.abs(r.x - small[0].x) < 500 && Math.abs(r.y - small[0].y) < 400));
}

function union(rs, pad) {
  const x = Math.min(...rs.map(r => r.x)) - pad, y = Math.min(...rs.map(r => r.y)) - pad;
  return { x, y, w: Math.max(...rs.map(r => r.x + r.w)) + pad - x, h: Math.max(...rs.map(r => r.y + r.h)) + pad - y };
}

function fitStep(smooth) {
  const found = active();
  if (!found.length) return fitAll(smooth);
  look(toRectangle(union(found, 150), 1.5), smooth);
}

// To read: what fires is in the picture, at a size that can be read.
function follow(smooth) {
  if (at("size").value === "fit") return fitAll(false);
  if (!at("follow").checked) return;
  const found = active();
  if (!found.length) return;
  const r = union(found, 50), { w, open: h } = room(), s = Math.max(view.s, READ);
  const x0 = view.x + r.x * view.s, y0 = view.y + r.y * view.s;
  if (s === view.s && x0 >= 0 && y0 >= 0 && x0 + r.w * s <= w && y0 + r.h * s <= h) return;
  look({ s, x: w / 2 - s * (r.x + r.w / 2), y: h / 2 - s * (r.y + r.h / 2) }, smooth);
}

const chart = at("map");
const chartOfAll = document.createElement("canvas");  // the blocks; what is seen of them is drawn on top
let mapped = { s: 1, x: 0, y: 0, all: null };

function map() {
  mapBlocks();
  mapView();
}

function mapBlocks() {
  const all = whole(), c = chartOfAll.getContext("2d"), styles = getComputedStyle(document.body), { width: W, height: H } = chart;
  const s = Math.min(W / all.w, H / all.h);
  mapped = { s, x: (W - s * all.w) / 2 - s * all.x, y: (H - s * all.h) / 2 - s * all.y, all };
  chartOfAll.width = W; chartOfAll.height = H;
  const colour = n => styles.getPropertyValue(n).trim();
  const tints = { blue: colour("--blue"), orange: colour("--orange"), green: colour("--green"), box: colour("--fn"), node: colour("--wire") };
  const { fires, made } = film.shots[step], lit = new Set([fires, ...(made ?? [])].map(k => hiddenIn(k) ?? k));
  for (const pass of [0, 1]) for (const [key, { to: r }] of drawn) {
    const b = model.blocks.get(key), outer = AROUND.test(b.looks);
    if (isPort(b) || (pass === 0) !== outer || hides(key)) continue;
    const args = [mapped.x + s * r.x, mapped.y + s * r.y, Math.max(1, s * r.w), Math.max(1, s * r.h)];
    const kind = FRAME.exec(b.looks)?.[0] ?? (outer ? "box" : "node");
    c.fillStyle = c.strokeStyle = lit.has(key) ? colour("--fire") : tints[kind];
    outer ? c.strokeRect(...args) : c.fillRect(...args);
  }
  mapped.ink = colour("--ink");
}

function mapView() {
  if (!mapped.all) return;
  const { w, h } = room(), c = chart.getContext("2d");
  chart.hidden = view.s * mapped.all.w <= w + 1 && view.s * mapped.all.h <= h + 1;
  if (chart.hidden) return;
  c.clearRect(0, 0, chart.width, chart.height);
  c.drawImage(chartOfAll, 0, 0);
  c.strokeStyle = mapped.ink; c.lineWidth = 1.5;
  const s = mapped.s;
  c.strokeRect(mapped.x + s * -view.x / view.s, mapped.y + s * -view.y / view.s, s * w / view.s, s * h / view.s);
}

function mapTo(e) {
  const r = chart.getBoundingClientRect(), px = (e.clientX - r.left) * chart.width / r.width, py = (e.clientY - r.top) * chart.height / r.height;
  const { w, h } = room();
  free();
  look({ s: view.s, x: w / 2 - view.s * (px - mapped.x) / mapped.s, y: h / 2 - view.s * (py - mapped.y) / mapped.s });
}
chart.addEventListener("pointerdown", e => { e.stopPropagation(); mapTo(e); chart.setPointerCapture(e.pointerId); });
chart.addEventListener("pointermove", e => e.buttons && mapTo(e));

const free = () => { at("size").value = "full"; };  // the view is the reader's now
const fingers = new Map();
stage.addEventListener("wheel", e => {
  e.preventDefault();
  free();
  const r = stage.getBoundingClientRect();
  if (e.shiftKey) look({ ...view, x: view.x - e.deltaY });
  else zoom(Math.exp(-e.deltaY / 500), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
stage.addEventListener("pointerdown", e => {
  if (e.target.closest("button")) return;
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
});
addEventListener("pointermove", e => {
  const before = fingers.get(e.pointerId);
  if (!before) return;
  const dx = e.clientX - before[0], dy = e.clientY - before[1];
  if (!stage.classList.contains("drags") && Math.hypot(dx, dy) < 4) return;
  stage.classList.add("drags");
  free();
  if (fingers.size === 2) {
    const other = [...fingers].find(([id]) => id !== e.pointerId)[1], r = stage.getBoundingClientRect();
    const was = Math.hypot(before[0] - other[0], before[1] - other[1]), is = Math.hypot(e.clientX - other[0], e.clientY - other[1]);
    zoom(is / Math.max(1, was), other[0] - r.left, other[1] - r.top);
  } else look({ ...view, x: view.x + dx, y: view.y + dy });
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
});
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, e => {
  if (!fingers.delete(e.pointerId)) return;
  if (stage.classList.contains("drags")) { setTimeout(() => stage.classList.remove("drags")); return; }
});
addEventListener("resize", () => { size = null; at("size").value === "fit" ? fitAll() : look(view); });

// --- boxes ------------------------------------------------------------------------------------------

function folds() {
  const how = at("fold").value, boxes = [...model.blocks.values()].filter(isBox);
  joined.clear(); lineGroups.clear();
  if (how === "lines") joinLines();
  if (how === "") { for (const key of shut) if (!model.blocks.has(key)) shut.delete(key); return; }
  const { fires, made } = film.shots[step];
  const near = new Set();
  for (const key of [fires, ...(made ?? [])]) for (let k = key; k; k = model.blocks.get(k)?.within) near.add(k);
  const asked = { open: () => false, lines: () => false, shut: () => true, near: b => !near.has(b.key), loops: isLoop, branches: isBranch,
    functions: b => !isLoop(b) && !isBranch(b) }[how];
  shut = new Set(boxes.filter(asked).map(b => b.key));
}

function toggle(key) {
  shut.delete(key) || shut.add(key);
  at("fold").value = "";
  render(true);
  drawn.get(key)?.element?.focus({ preventScroll: true });  // it was put in its order anew
  map();
}

// --- the step beside it -----------------------------------------------------------------------------

function side(shot) {
  at("number").textContent = step ? `Step ${step}:` : "Start";
  at("rule").textContent = shot.rule;
  at("said").textContent = film.said[shot.said];
  at("line").textContent = [shot.fires, ...(shot.made ?? [])].map(k => lineOf(model.blocks.get(k))).find(Boolean) ?? "";
  at("count").textContent = `${step} of ${LAST}`;
  const picture = at("picture");
  picture.replaceChildren();
  if (shot.picture >= 0) {
    ["the rule takes", "and makes of it"].forEach((words, i) => {
      const [body, width, height] = film.rules[shot.picture][i];
      picture.appendChild(document.createElement("p")).textContent = words;
      const drawing = picture.appendChild(document.createElementNS(SVG, "svg"));
      drawing.setAttribute("viewBox", `-12 -12 ${width + 24} ${height + 24}`);
      drawing.setAttribute("width", width + 24);
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", `${i ? "right" : "left"} side of the rule ${shot.rule}`);
      drawing.innerHTML = body;
    });
  }
  write();
  at("first").disabled = at("back").disabled = step === 0;
  at("next").disabled = at("last").disabled = step === LAST;
  at("slider").value = step;
  at("slider").setAttribute("aria-valuetext", `step ${step} of ${LAST}${shot.rule && ", " + shot.rule}`);
  at("steps").selectedIndex = step;
}

function write() {
  const { texts } = film.shots[step];
  at("same").hidden = at("text").hidden = !texts;
  if (!texts) return;
  at("text").replaceChildren(...texts[Number(at("language").value)].map(([line, fresh]) => {
    const element = document.createElement(fresh ? "mark" : "span");
    element.textContent = film.lines[line] + "\n";
    return element;
  }));
}

function go(to, smooth = true) {
  to = Math.max(0, Math.min(LAST, to));
  if (to === step && started) return;
  smooth = smooth && started && Math.abs(to - step) === 1;
  started = true;
  step = to;
  modelAt(to);
  folds();
  setBlocks();
  animate(smooth);
  side(film.shots[step]);
  follow(smooth);
  map();
  history.replaceState(null, "", "#" + step);
}

function playing(on) {
  clearInterval(timer);
  timer = 0;
  if (on) {
    if (step === LAST) go(0);
    timer = setInterval(() => step < LAST ? go(step + 1) : playing(false), Number(at("speed").value));
  }
  at("play").textContent = on ? "Pause" : "Play";
  at("play").setAttribute("aria-label", on ? "Pause" : "Play");
}

// --- what a reader does -----------------------------------------------------------------------------

const acts = { first: () => go(0), back: () => go(step - 1), next: () => go(step + 1), last: () => go(LAST) };
for (const [id, act] of Object.entries(acts)) at(id).addEventListener("click", () => { playing(false); act(); });
const views = {
  in: () => { free(); zoom(1.4, undefined, undefined, true); }, out: () => { free(); zoom(1 / 1.4, undefined, undefined, true); },
  all: () => { at("size").value = "fit"; fitAll(true); }, here: () => { free(); fitStep(true); },
};
for (const [id, act] of Object.entries(views)) at(id).addEventListener("click", act);
at("play").addEventListener("click", () => playing(!timer));
at("slider").addEventListener("input", e => { playing(false); go(Number(e.target.value)); });
at("steps").append(...film.shots.map((shot, i) => new Option(`${i}  ${shot.rule || "start"}  ${shot.what}`, i)));
at("steps").addEventListener("change", e => { playing(false); go(Number(e.target.value)); });
at("speed").addEventListener("change", () => timer && playing(true));
at("fold").addEventListener("change", () => { folds(); setBlocks(); animate(false); follow(false); });
at("size").addEventListener("change", () => at("size").value === "fit" ? fitAll(true) : (look({ ...view, s: Math.max(1, view.s) }), fitStep(true)));
at("follow").addEventListener("change", () => follow(true));
at("language").addEventListener("change", write);
const sent = Object.keys(film.steps).length > 0;
if (sent) at("clicks").textContent = "click or Enter: what an edge sends";
at("fold").parentElement.hidden = sent;
function chosen(target) {
  const { step, box } = target?.closest?.("[data-step], [data-box]")?.dataset ?? {};
  if (step !== undefined) { playing(false); go(Number(step)); }
  else if (box) toggle(box);
  return step !== undefined || Boolean(box);
}
svg.addEventListener("click", e => stage.classList.contains("drags") || chosen(e.target));

const KEYS = { ArrowLeft: acts.back, ArrowRight: acts.next, Home: acts.first, End: acts.last };
const LOOKS = { "+": views.in, "=": views.in, "-": views.out, 0: views.all, f: views.here, F: views.here };
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT") return;
  if ((e.key === " " || e.key === "Enter") && chosen(e.target)) e.preventDefault();
  else if (e.key === " " && !["BUTTON", "INPUT"].includes(e.target.tagName)) { e.preventDefault(); playing(!timer); }
  else if (KEYS[e.key] && e.target.tagName !== "INPUT") { e.preventDefault(); playing(false); KEYS[e.key](); }
  else if (LOOKS[e.key]) LOOKS[e.key]();
});
// Text of less than 9 pixels is no text: a picture so large begins in a size that can be read.
const all = union(film.shots.flatMap(shot => shot.put ?? []).map(block).filter(b => b.x !== undefined).map(b => named(b, b)).concat({ x: 0, y: 0, w: 0, h: 0 }), 14);
if (toRectangle(all, 1.5).s < READ) at("size").value = "full";
modelAt(0);
look({ x: -all.x, y: -all.y, s: 1 });
go(Number(location.hash.slice(1)) || 0, false);
if (at("size").value === "full") {
  const ends = [...drawn].filter(([key]) => { const b = model.blocks.get(key); return isPort(b) && !b.within && isLeft(b); });
  const r = ends.length ? union(ends.map(([key, item]) => named(model.blocks.get(key), item.to)), 14) : whole();
  step && active().length ? follow(false) : look({ x: -r.x, y: room().h / 2 - r.y - r.h / 2, s: 1 });
}
