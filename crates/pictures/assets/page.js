// The page's behavior. All text goes through textContent: a token can be anything and stays text.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const kinds = data.kinds;

const state = {
  kind: kinds.findIndex((kind) => kind.name === data.start.kind),
  layer: data.start.layer,
  head: data.start.head, // a number, "mean" or "rollout"
  words: data.start.words,
  step: 0,
  kept: null, // the token that was clicked
  pointed: null, // the token under the pointer: {side: "query" | "key", index}
};

// ---- what is shown ----

const percent = (weight) => {
  const value = weight * 100;
  return (value >= 9.95 || value < 0.05 ? value.toFixed(0) : value.toFixed(1)) + " %";
};
const kind = () => kinds[state.kind];
const side = (name) => data.sides[name];
const labels = (name) => (state.words ? side(name).words : side(name).tokens.map((token) => token[0]));
const wordsOf = (name) => side(name).tokens.map((token) => token[1]);

// One map as rows of weights: {queries, keys, rows}.
function view(layer, head) {
  const stored = kind().layers[layer];
  const flat = typeof head === "number" ? stored.heads[head] : stored[head];
  const columns = side(kind().keys).tokens.length;
  let rows = side(kind().queries).tokens.map((_, row) =>
    flat.slice(row * columns, (row + 1) * columns).map((weight) => weight / data.whole));
  if (state.words) rows = merged(rows, wordsOf(kind().queries), wordsOf(kind().keys));
  return { queries: labels(kind().queries), keys: labels(kind().keys), rows };
}

// Merges subwords: the weights of a word's keys are added, those of its queries averaged.
function merged(rows, queryWords, keyWords) {
  const words = rows.length ? queryWords[queryWords.length - 1] + 1 : 0;
  const columns = keyWords[keyWords.length - 1] + 1;
  const out = Array.from({ length: words }, () => new Array(columns).fill(0));
  rows.forEach((row, query) => {
    const word = queryWords[query];
    const pieces = queryWords.filter((other) => other === word).length;
    row.forEach((weight, key) => { out[word][keyWords[key]] += weight / pieces; });
  });
  return out;
}

// The chosen query or key: under the pointer, else kept, else where the decoder stands.
function focus() {
  if (state.pointed) return state.pointed;
  if (state.kept) return state.kept;
  if (kind().name === "encoder") return null;
  const index = state.words ? wordsOf(kind().queries)[state.step] : state.step;
  return { side: "query", index };
}

const colors = () => (document.documentElement.dataset.theme === "dark" ? data.dark : data.light);
const color = (weight) => colors()[Math.round(Math.min(Math.max(weight, 0), 1) * 100)];

// ---- drawing ----

function make(namespace, tag, attributes, ...children) {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const svg = (tag, attributes, ...children) => make("http://www.w3.org/2000/svg", tag, attributes, ...children);
const html = (tag, attributes, ...children) => make("http://www.w3.org/1999/xhtml", tag, attributes, ...children);

const pen = document.createElement("canvas").getContext("2d");
function textWidth(text, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}
// As much of a text as fits, by whole characters.
function fitted(text, size, width) {
  if (textWidth(text, size) <= width) return text;
  const letters = Array.from(new Intl.Segmenter().segment(text), (part) => part.segment);
  while (letters.length > 1 && textWidth(letters.join("") + "…", size) > width) letters.pop();
  return letters.join("") + "…";
}

// A token's text; the mark of a space is faint, as it is not what is read.
const marked = (text, mark) => text.split(/(▁)/).filter((part) => part)
  .map((part) => (part === "▁" ? mark({ class: "space" }, part) : part));
const inHtml = (text) => marked(text, (...rest) => html("span", ...rest));
const inSvg = (text) => marked(text, (...rest) => svg("tspan", ...rest));

let shown; // the map that is on the page

// Lines and map are drawn once for each choice; pointing only marks what is there, so that nothing
// moves or vanishes under the pointer.
let lines; // {curves: [{node, query, key, weight}], tokens: [{node, box, share, side, index, text}]}
let cells; // {mark, left, top, cell, width, height, labels: [{node, side, index}]}

function drawLines() {
  const { queries, keys, rows } = shown;
  const count = Math.max(queries.length, keys.length);
  const pitch = count > 40 ? 17 : 23;
  const size = count > 40 ? 12 : 14;
  const width = 420;
  const room = Math.min(130, Math.max(...[...queries, ...keys].map((text) => textWidth(text, size))) + 12);
  const right = width - room - 42; // the rest is for the shares
  const middle = (room + right) / 2;
  const at = (index, length) => (index + 0.5 + (count - length) / 2) * pitch;
  const curves = rows.flatMap((row, query) => row.map((weight, key) => {
    const [from, to] = [at(query, queries.length), at(key, keys.length)];
    const d = `M${room + 4} ${from}C${middle} ${from} ${middle} ${to} ${right - 4} ${to}`;
    return { query, key, weight, node: svg("path", { d, "data-line": `${query}-${key}` }) };
  })).filter((curve) => curve.weight >= 0.005);
  const token = (which, text, index, length, x, anchor) => {
    const y = at(index, length);
    const left = anchor === "end" ? x - room : x;
    const box = svg("rect", { x: left + 1, y: y - pitch / 2 + 1, width: room - 2, height: pitch - 2 });
    const label = svg("text", { x: anchor === "end" ? x - 6 : x + 6, y: y + size * 0.35, "font-size": size, "text-anchor": anchor });
    label.append(...inSvg(fitted(text, size, room - 10)));
    const share = svg("text", { class: "share", x: x + room + 4, y: y + 4 });
    const node = svg("g", { tabindex: 0, role: "button", "data-token": `${which}-${index}` },
      box, label, svg("title", {}, text), share);
    return { node, box, share, side: which, index, text };
  };
  const tokens = [
    ...queries.map((text, i) => token("query", text, i, queries.length, room, "end")),
    ...keys.map((text, i) => token("key", text, i, keys.length, right, "start")),
  ];
  lines = { curves, tokens };
  $("lines").setAttribute("viewBox", `0 0 ${width} ${count * pitch + 4}`);
  $("lines").replaceChildren(...[...curves, ...tokens].map((part) => part.node));
}

function markLines(chosen) {
  for (const { node, query, key, weight } of lines.curves) {
    const lit = !chosen || chosen.index === (chosen.side === "query" ? query : key);
    node.style.display = lit || weight >= 0.1 ? "" : "none";
    node.setAttribute("stroke-width", (lit ? 0.8 + 3 * weight : 0.8).toFixed(2));
    node.setAttribute("stroke-opacity", (lit ? Math.min(1, 0.08 + weight) : 0.08).toFixed(3));
  }
  for (const { node, box, share, side, index, text } of lines.tokens) {
    const looks = chosen && chosen.side !== side;
    const weight = !looks ? null : side === "key" ? shown.rows[chosen.index][index] : shown.rows[index][chosen.index];
    node.setAttribute("class", chosen && !looks && chosen.index === index ? "token chosen" : "token");
    node.setAttribute("aria-label", looks ? `${text}, ${percent(weight)}` : text);
    box.style.fillOpacity = looks ? (weight * 0.75).toFixed(3) : "";
    share.textContent = looks && side === "key" ? percent(weight) : "";
  }
}

function drawMap() {
  const { queries, keys, rows } = shown;
  const cell = Math.max(10, Math.min(36, Math.floor(540 / Math.max(queries.length, keys.length))));
  const size = Math.max(8, Math.min(14, cell * 0.8));
  const widest = (texts) => Math.min(110, Math.max(...texts.map((text) => textWidth(text, size)))) + 8;
  const [left, top] = [widest(queries), widest(keys)];
  const [width, height] = [keys.length * cell, queries.length * cell];
  const label = (side, index, text, attributes) => {
    const node = svg("text", { "font-size": size, ...attributes }, ...inSvg(fitted(text, size, 110)));
    return { node, side, index };
  };
  const labels = [
    ...queries.map((text, i) => label("query", i, text, { x: left - 5, y: top + (i + 0.5) * cell + size * 0.35, "text-anchor": "end" })),
    ...keys.map((text, i) => {
      const [x, y] = [left + (i + 0.5) * cell + size * 0.35, top - 5];
      return label("key", i, text, { x, y, transform: `rotate(-90 ${x} ${y})` });
    }),
  ];
  const squares = rows.flatMap((row, query) => row.map((weight, key) => svg("rect", {
    x: left + key * cell, y: top + query * cell, width: cell, height: cell, fill: color(weight),
    "data-query": query, "data-key": key, "data-weight": weight.toFixed(4),
  })));
  const mark = svg("rect", { class: "mark" });
  cells = { mark, left, top, cell, width, height, labels };
  $("map").setAttribute("viewBox", `0 0 ${left + width + 4} ${top + height + 4}`);
  $("map").setAttribute("width", left + width + 4);
  $("map").replaceChildren(...labels.map((one) => one.node), svg("g", { "shape-rendering": "crispEdges" }, ...squares),
    svg("rect", { class: "frame", x: left, y: top, width, height }), mark);
}

function markMap(chosen) {
  const { mark, left, top, cell, width, height, labels } = cells;
  for (const { node, side, index } of labels) {
    node.setAttribute("class", chosen && chosen.side === side && chosen.index === index ? "chosen" : "");
  }
  mark.style.display = chosen ? "" : "none";
  if (!chosen) return;
  const row = chosen.side === "query";
  const place = row
    ? { x: left, y: top + chosen.index * cell, width, height: cell }
    : { x: left + chosen.index * cell, y: top, width: cell, height };
  for (const [name, value] of Object.entries(place)) mark.setAttribute(name, value);
}

// The pointed pair, or the strongest of the row or column, in words.
function say(pair) {
  const { queries, keys, rows } = shown;
  const chosen = focus();
  const quote = (text) => html("bdi", {}, "“", ...inHtml(text), "”");
  const parts = [];
  if (pair) {
    parts.push(quote(queries[pair.query]), ` looks ${percent(rows[pair.query][pair.key])} at `, quote(keys[pair.key]));
  } else if (chosen) {
    const weights = chosen.side === "query" ? rows[chosen.index] : rows.map((row) => row[chosen.index]);
    const most = weights.indexOf(Math.max(...weights));
    if (chosen.side === "query") parts.push(quote(queries[chosen.index]), ` looks most (${percent(weights[most])}) at `, quote(keys[most]));
    else parts.push(quote(keys[chosen.index]), ` is looked at most (${percent(weights[most])}) by `, quote(queries[most]));
  } else parts.push("point at a token or a cell");
  $("readout").replaceChildren(...parts);
}

function drawRamp() {
  const context = $("ramp").getContext("2d");
  colors().forEach((fill, i) => { context.fillStyle = fill; context.fillRect(i, 0, 1, 1); });
}

function drawHeads() {
  $("heads-title").textContent = `${kind().title}: all layers and heads`;
  const choices = [...kind().layers[0].heads.keys(), "mean", "rollout"];
  $("heads").replaceChildren(...kind().layers.map((_, layer) => {
    const heads = choices.map((head) => {
      const { queries, keys, rows } = view(layer, head);
      const canvas = html("canvas", { width: keys.length, height: queries.length });
      const context = canvas.getContext("2d");
      rows.forEach((row, y) => row.forEach((weight, x) => { context.fillStyle = color(weight); context.fillRect(x, y, 1, 1); }));
      const name = typeof head === "number" ? `head ${head + 1}` : head;
      const button = html("button", {
        type: "button", class: "head", "aria-label": `layer ${layer + 1}, ${name}`,
        "aria-pressed": layer === state.layer && head === state.head, "data-head": `${layer}-${head}`,
      }, canvas, html("span", {}, name));
      button.addEventListener("click", () => change({ layer, head }));
      return button;
    });
    return html("div", { class: "layer" }, html("span", {}, `layer ${layer + 1}`), ...heads);
  }));
}

function drawStep() {
  const step = data.steps[state.step];
  const [read, written] = [side("read").tokens, side("written").tokens];
  $("step").max = written.length;
  $("step").value = state.step + 1;
  $("step-number").textContent = `${state.step + 1} of ${written.length}`;
  const token = (text, name) => html("bdi", { class: name }, ...inHtml(text));
  const spaced = (nodes) => nodes.flatMap((node) => [node, " "]);
  $("so-far").replaceChildren(...spaced([
    ...read.slice(0, state.step + 1).map(([text]) => token(text, "read")),
    token(written[state.step][0], "now"),
    ...written.slice(state.step + 1).map(([text]) => token(text, "later")),
  ]));
  $("choice").replaceChildren("next: ", token(written[state.step][0], ""),
    ` with ${percent(step.probability)}` + (step.rank === 1 ? ", the most probable token" : `, number ${step.rank} by probability`));
  $("next").replaceChildren(...step.next.map(([text, probability]) => {
    const bar = html("div", { class: "bar" });
    bar.style.width = `${(probability * 100).toFixed(2)}%`;
    return html("li", { class: text === written[state.step][0] ? "written" : "" },
      html("bdi", { title: text }, ...inHtml(text)), bar, html("span", { class: "probability" }, percent(probability)));
  }));
}

// ---- choosing ----

function controls() {
  const group = (name, legend, options, chosen) => html("fieldset", {}, html("legend", {}, legend),
    ...options.map(([value, text]) => {
      const input = html("input", { type: "radio", name, value });
      input.checked = String(value) === String(chosen);
      return html("label", {}, input, html("span", {}, text));
    }));
  const { layers } = kind();
  $("controls").replaceChildren(
    group("kind", "kind", kinds.map((kind, i) => [i, kind.title]), state.kind),
    group("layer", "layer", layers.map((_, i) => [i, i + 1]), state.layer),
    group("head", "head", [...layers[0].heads.map((_, i) => [i, i + 1]), ["mean", "mean"], ["rollout", "rollout"]], state.head),
    group("words", "show", [[false, "tokens"], [true, "words"]], state.words));
}

// Takes new choices and draws what depends on them.
function change(choices) {
  if ("kind" in choices || "words" in choices) Object.assign(state, { kept: null, pointed: null });
  Object.assign(state, choices);
  state.layer = Math.min(state.layer, kind().layers.length - 1);
  if (typeof state.head === "number") state.head = Math.min(state.head, kind().layers[0].heads.length - 1);
  const active = document.activeElement;
  const again = active && active.type === "radio" && !byPointer ? active.name : null;
  controls();
  // The buttons are new: whoever came to one by keyboard stays on it, and its arrows go on working;
  // whoever clicked has the arrows for the decoder.
  if (again) document.querySelector(`input[name="${again}"]:checked`).focus();
  draw();
}

function draw() {
  $("axes").textContent = kind().axes;
  shown = view(state.layer, state.head);
  drawRamp();
  drawHeads();
  drawLines();
  drawMap();
  refocus();
  drawStep();
}

function refocus() {
  markLines(focus());
  markMap(focus());
  say();
}

function moveStep(by) {
  const last = data.steps.length - 1;
  Object.assign(state, { step: Math.min(Math.max(state.step + by, 0), last), kept: null, pointed: null });
  drawStep();
  refocus();
}

function moveQuery(by) {
  const chosen = focus();
  const count = shown.queries.length;
  const from = chosen && chosen.side === "query" ? chosen.index : by > 0 ? -1 : count;
  Object.assign(state, { pointed: null, kept: { side: "query", index: Math.min(Math.max(from + by, 0), count - 1) } });
  refocus();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
}

// ---- events ----

let byPointer = false;
document.addEventListener("pointerdown", () => { byPointer = true; }, true);
document.addEventListener("keydown", () => { byPointer = false; }, true);

$("controls").addEventListener("change", (event) => {
  const { name, value } = event.target;
  change({ [name]: name === "words" ? value === "true" : /^\d+$/.test(value) ? Number(value) : value });
});
$("controls").addEventListener("submit", (event) => event.preventDefault());

const tokenOf = (event) => {
  const group = event.target.closest("[data-token]");
  if (!group) return null;
  const [side, index] = group.dataset.token.split("-");
  return { side, index: Number(index) };
};
const same = (a, b) => a && b && a.side === b.side && a.index === b.index;
function point(token) {
  if (same(token, state.pointed) || (!token && !state.pointed)) return;
  state.pointed = token;
  refocus();
}
$("lines").addEventListener("pointerover", (event) => { const token = tokenOf(event); if (token) point(token); });
$("lines").addEventListener("pointerleave", () => point(null));
$("lines").addEventListener("click", (event) => {
  const token = tokenOf(event);
  state.kept = token && !same(token, state.kept) ? token : null;
  refocus();
});
$("lines").addEventListener("focusin", (event) => {
  if (event.target.matches(":focus-visible")) point(tokenOf(event));
});
$("lines").addEventListener("focusout", () => point(null));
$("map").addEventListener("pointerover", (event) => {
  const { query, key } = event.target.dataset;
  if (query === undefined) return;
  point({ side: "query", index: Number(query) });
  say({ query: Number(query), key: Number(key) });
});
$("map").addEventListener("pointerleave", () => point(null));

$("step").addEventListener("input", () => moveStep(Number($("step").value) - 1 - state.step));
$("back").addEventListener("click", () => moveStep(-1));
$("forward").addEventListener("click", () => moveStep(1));
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

const next = (list, now, by) => list[(list.indexOf(now) + by + list.length) % list.length];
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const by = event.shiftKey ? -1 : 1;
  // Sliders and radio buttons have their own use for arrows.
  const own = event.target.matches && event.target.matches("input");
  const heads = [...kind().layers[0].heads.keys(), "mean", "rollout"];
  const actions = {
    k: () => change({ kind: next([...kinds.keys()], state.kind, by) }),
    l: () => change({ layer: next([...kind().layers.keys()], state.layer, by) }),
    h: () => change({ head: next(heads, state.head, by) }),
    w: () => change({ words: !state.words }),
    t: () => $("theme").click(),
    escape: () => { Object.assign(state, { kept: null, pointed: null }); refocus(); },
  };
  if (!own) Object.assign(actions, {
    arrowleft: () => moveStep(-1),
    arrowright: () => moveStep(1),
    arrowup: () => moveQuery(-1),
    arrowdown: () => moveQuery(1),
  });
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
});

// Paper is white.
let before = null;
window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; setTheme("light"); });
window.addEventListener("afterprint", () => { if (before) setTheme(before); });

$("source-text").textContent = data.source;
$("target-text").textContent = data.target;
$("model").textContent = data.model;
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
// A page that shows this one in a frame says by the frame's name whether it is dark there.
const framed = /^explorer-(light|dark)$/.exec(window.name);
document.documentElement.dataset.theme = framed ? framed[1] : dark.matches ? "dark" : "light";
controls();
draw();
