/* Elements, numbers as text, plots' axes, and what several sections use. */
const data = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg";
const PHASES = [["quantize_s", "quantize", "--int16"], ["session_s", "open the session", "--weight"],
	["evaluate_s", "evaluate", "--int8"], ["measure_s", "measure the time", "--dynamic"], ["rest_s", "other", "--other"]];
const PRECISIONS = [["int8", "int8", "--int8"], ["dynamic", "dynamic int8", "--dynamic"], ["int16", "16 bits", "--int16"],
	["weight_only", "weight-only", "--weight"], ["fp32", "fp32", "--fp32"]];

function fill(node, attributes, children) {
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false) continue;
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else node.setAttribute(key, value === true ? "" : value);
	}
	node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
	return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(NS, tag), attributes, children);
const color = (name) => `var(${name})`;
const isNumber = (x) => typeof x === "number" && isFinite(x);

function number(x, digits = 4) {
	if (!isNumber(x)) return "–";
	if (x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e7)) return x.toExponential(Math.max(digits - 2, 1));
	return String(+x.toPrecision(digits));
}
function score(x) { /* with as many digits as the run's other scores */
	return !isNumber(x) ? "–" : x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(2) : x.toFixed(4);
}
function bytes(n) {
	if (!isNumber(n)) return "–";
	for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= size) return number(n / size, 3) + " " + unit;
	return n + " B";
}
const milliseconds = (x) => (isNumber(x) ? number(x, 3) + " ms" : "–");
function seconds(x) {
	if (!isNumber(x)) return "–";
	if (x < 60) return number(x, 3) + " s";
	return x < 3600 ? `${Math.floor(x / 60)} min ${Math.round(x % 60)} s` : `${Math.floor(x / 3600)} h ${Math.round((x % 3600) / 60)} min`;
}
const percent = (x, digits = 3) => (isNumber(x) ? number(100 * x, digits) + " %" : "–");
function speedup(x, low, high) {
	if (!isNumber(x)) return "–";
	const interval = isNumber(low) && isNumber(high) && low < high ? ` (${low.toFixed(2)} to ${high.toFixed(2)})` : "";
	return x.toFixed(2) + "×" + interval;
}
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const baseName = (path) => String(path).replace(/\/+$/, "").split("/").pop();

/* Of a trial that ended early only bounds are known; of one that was not evaluated, nothing. */
const isEarly = (t) => !t.failed && !isNumber(t.accuracy);
function accuracyText(t) {
	if (isNumber(t.accuracy)) return score(t.accuracy);
	if (isNumber(t.accuracy_low) && isNumber(t.accuracy_high)) return `${score(t.accuracy_low)} to ${score(t.accuracy_high)}`;
	return "–";
}
const trialOf = (run, number) => run.trials.find((t) => t.trial === number);

function section(id, title, about, ...children) {
	return el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title),
		about && el("p", { class: "note" }, about), children);
}
function legend(items) {
	return el("ul", { class: "legend" }, items.map(([label, name]) => el("li", {}, el("i", { style: `background:${color(name)}`, "aria-hidden": "true" }), label)));
}
function scrolling(label, table) {
	return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}
function copyable(text) {
	const button = el("button", { type: "button", onclick: async () => {
		try { await navigator.clipboard.writeText(text); } catch (e) { /* file:// in some browsers: select it instead */
			getSelection().selectAllChildren(pre);
		}
		button.textContent = "copied";
		setTimeout(() => { button.textContent = "copy"; }, 1500);
	} }, "copy");
	const pre = el("pre", {}, text);
	return el("div", { class: "copy" }, pre, button);
}
/* Buttons of which one is pressed. */
function choice(label, options, current, pick) {
	const buttons = options.map(([value, text]) => el("button", { type: "button", "aria-pressed": String(value === current), onclick: (e) => {
		buttons.forEach((b) => b.setAttribute("aria-pressed", "false"));
		e.currentTarget.setAttribute("aria-pressed", "true");
		pick(value);
	} }, text));
	return el("span", { class: "group controls", role: "group", "aria-label": label }, buttons);
}
function openDetail(title, ...children) {
	const dialog = document.getElementById("detail");
	dialog.replaceChildren(el("button", { type: "button", class: "close", onclick: () => dialog.close() }, "close"),
		el("h2", { id: "detail-title" }, title), ...children.flat(Infinity).filter(Boolean));
	if (!dialog.open) dialog.showModal();
	dialog.scrollTop = 0;
}
/* A short text beside the pointer; the same is in the element's aria-label. */
let tip;
function showTip(text, event) {
	if (!tip) document.body.append(tip = el("div", { id: "tip", "aria-hidden": "true" }));
	tip.style.display = text ? "block" : "none";
	if (!text) return;
	tip.textContent = text;
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
	tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
}
/* Marks that can be clicked: one stop of the Tab key for all, arrows move among them. */
function clickable(node, label, activate) {
	return fill(node, { class: "hit", role: "button", tabindex: "-1", "aria-label": label, onclick: activate,
		onmousemove: (e) => showTip(label, e), onmouseleave: () => showTip("") }, []);
}
function arrowKeys(container) {
	const marks = () => [...container.querySelectorAll(".hit")];
	const first = marks()[0];
	if (first) first.setAttribute("tabindex", "0");
	container.addEventListener("keydown", (e) => {
		const all = marks(), at = all.indexOf(document.activeElement);
		if (at < 0) return;
		if (e.key === "Enter" || e.key === " ") { e.preventDefault(); all[at].dispatchEvent(new MouseEvent("click")); return; }
		const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
		const to = e.key === "Home" ? 0 : e.key === "End" ? all.length - 1 : at + step;
		if (!all[to]) return;
		e.preventDefault();
		all[at].setAttribute("tabindex", "-1");
		all[to].setAttribute("tabindex", "0");
		all[to].focus();
	});
}
/* Round numbers between low and high. */
function ticks(low, high, wanted = 5) {
	const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
	const out = [];
	for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-9; x += step) out.push(+x.toPrecision(12));
	return out;
}
function scale(low, high, from, to) {
	const f = (x) => from + ((x - low) / (high - low || 1)) * (to - from);
	f.low = low;
	f.high = high;
	return f;
}
/* The width that a plot has, and a drawing that follows it. */
function plot(label, height, draw) {
	const box = el("div", {});
	let last = 0;
	const redraw = () => {
		const width = Math.max(280, Math.floor(box.clientWidth));
		if (!box.clientWidth) return;
		last = width;
		const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
		draw(picture, width, height);
		box.replaceChildren(picture);
		arrowKeys(picture);
	};
	new ResizeObserver(() => { if (Math.floor(box.clientWidth) !== last) redraw(); }).observe(box);
	box.redraw = redraw;
	return box;
}
function axes(picture, x, y, size, labels) {
	const { left, top, right, bottom } = size;
	for (const v of ticks(y.low, y.high)) picture.append(svg("line", { class: "gridline", x1: left, x2: right, y1: y(v), y2: y(v) }),
		svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
	for (const v of ticks(x.low, x.high, Math.max(2, Math.floor((right - left) / 110)))) picture.append(svg("text", { x: x(v), y: bottom + 17, "text-anchor": "middle" }, number(v)));
	picture.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
		svg("text", { x: right, y: bottom + 33, "text-anchor": "end" }, labels.x), svg("text", { x: 4, y: top - 8 }, labels.y));
}
