/* The graph on a canvas: layered from top to bottom, coloured by precision, with the conversions that the runtime keeps. */
const NODE = { width: 132, height: 26, across: 150, down: 58 };
const precisionWord = (op) => (PRECISIONS.find(([key]) => key === op.is) || [0, op.type ? "as its input (moves data or is part of another op)" : null])[1];

function conversionsOf(graph) {
	const short = { QuantizeLinear: "quantize", DequantizeLinear: "dequantize", DynamicQuantizeLinear: "quantize dynamically" }, out = new Map();
	for (const [op, kind] of graph.conversions) out.set(op, [...(out.get(op) || []), short[kind] || kind]);
	return out;
}
/* Layers by the longest path; within one, ops go where their neighbours are, then apart. */
function layout(graph) {
	const n = graph.ops.length, layer = new Array(n).fill(0), before = graph.ops.map(() => []), after = graph.ops.map(() => []), x = new Array(n).fill(0), rows = [];
	for (const [a, b] of graph.edges) { before[b].push(a); after[a].push(b); }
	for (let i = 0; i < n; i++) for (const a of before[i]) layer[i] = Math.max(layer[i], layer[a] + 1);
	for (let i = n - 1; i >= 0; i--) if (!before[i].length && after[i].length) layer[i] = Math.min(...after[i].map((b) => layer[b])) - 1;
	layer.forEach((l, i) => { (rows[l + 1] = rows[l + 1] || []).push(i); });
	const apart = (row, wish) => {
		row.sort((a, b) => wish(a) - wish(b) || a - b);
		row.forEach((i, k) => { x[i] = k ? Math.max(wish(i), x[row[k - 1]] + 1) : wish(i); });
		const shift = row.reduce((s, i) => s + wish(i) - x[i], 0) / row.length;
		row.forEach((i) => { x[i] += shift; });
	};
	const mean = (list, i) => (list.length ? list.reduce((s, k) => s + x[k], 0) / list.length : x[i]);
	const filled = rows.filter(Boolean);
	filled.forEach((row) => row.forEach((i, k) => { x[i] = k - (row.length - 1) / 2; }));
	for (let turn = 0; turn < 4; turn++) {
		filled.forEach((row) => { const at = row.map((i) => mean(before[i], i)), wish = new Map(row.map((i, k) => [i, at[k]])); apart(row, (i) => wish.get(i)); });
		[...filled].reverse().forEach((row) => { const at = row.map((i) => mean(after[i], i)), wish = new Map(row.map((i, k) => [i, at[k]])); apart(row, (i) => wish.get(i)); });
	}
	const top = Math.min(...layer);
	return columns(graph.ops.map((op, i) => ({ op, i, x: x[i] * NODE.across, y: (layer[i] - top) * NODE.down })));
}
/* A long chain would be a thin line when shown whole: it continues at the top of a next column. */
function columns(nodes) {
	const wide = Math.max(...nodes.map((p) => p.x)) - Math.min(...nodes.map((p) => p.x)) + 1.4 * NODE.across, tall = Math.max(...nodes.map((p) => p.y)) + NODE.down;
	const n = Math.max(1, Math.floor(Math.sqrt((1.6 * tall) / wide))), height = Math.ceil(tall / n / NODE.down) * NODE.down;
	return n < 2 ? nodes : nodes.map((p) => ({ ...p, column: Math.floor(p.y / height), x: p.x + Math.floor(p.y / height) * wide, y: p.y % height }));
}
function graphSection(run) {
	const title = "The graph by precision", graph = run.graph;
	if (!graph || !graph.ops.length) return run.missing && run.missing.graph ? section("graph", title, null, whyMissing(run, "graph")) : null;
	const nodes = layout(graph), paid = conversionsOf(graph), canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `The graph of ${graph.ops.length} ops; the table below has the same. Arrows move it, + and - zoom, 0 shows it whole.` });
	const view = { x: 0, y: 0, scale: 1 }, pen = canvas.getContext("2d");
	let found = -1, waiting = false, size = { width: 0, height: 0 };
	const low = Math.min(...nodes.map((p) => p.x)) - NODE.width, high = Math.max(...nodes.map((p) => p.x)) + NODE.width, tall = Math.max(...nodes.map((p) => p.y)) + 2 * NODE.height;
	function draw() {
		waiting = false;
		const css = getComputedStyle(document.documentElement), ink = (name) => css.getPropertyValue(name).trim(), ratio = devicePixelRatio || 1;
		const fills = Object.fromEntries(PRECISIONS.map(([key, , name]) => [key, ink(name)])), text = ink("--text"), other = ink("--other"), line = ink("--muted"), surface = ink("--surface"), mark = ink("--bad");
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		pen.clearRect(0, 0, size.width, size.height);
		pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
		const left = -view.x / view.scale - NODE.width, right = (size.width - view.x) / view.scale + NODE.width, above = -view.y / view.scale - NODE.down, below = (size.height - view.y) / view.scale + NODE.down;
		pen.strokeStyle = line;
		pen.globalAlpha = 0.5;
		pen.lineWidth = Math.max(1, 0.7 / view.scale);
		pen.beginPath();
		for (const [a, b] of graph.edges) {
			const p = nodes[a], q = nodes[b];
			if (p.column !== q.column) {
				pen.moveTo(p.x, p.y + NODE.height / 2);
				pen.lineTo(q.x, q.y - NODE.height / 2);
				continue;
			}
			if (Math.max(p.y, q.y) < above || Math.min(p.y, q.y) > below || Math.max(p.x, q.x) < left || Math.min(p.x, q.x) > right) continue;
			const y1 = p.y + NODE.height / 2, y2 = q.y - NODE.height / 2, bend = Math.min(40, (y2 - y1) / 2);
			pen.moveTo(p.x, y1);
			pen.bezierCurveTo(p.x, y1 + bend, q.x, y2 - bend, q.x, y2);
		}
		pen.stroke();
		pen.globalAlpha = 1;
		pen.font = "12px system-ui, sans-serif";
		pen.textAlign = "center";
		pen.textBaseline = "middle";
		for (const p of nodes) {
			if (p.y < above || p.y > below || p.x < left || p.x > right) continue;
			pen.fillStyle = p.op.is ? fills[p.op.is] : other;
			pen.globalAlpha = p.op.is ? 1 : 0.55;
			pen.beginPath();
			pen.roundRect(p.x - NODE.width / 2, p.y - NODE.height / 2, NODE.width, NODE.height, 6);
			pen.fill();
			pen.globalAlpha = 1;
			if (p.i === found) { pen.strokeStyle = text; pen.lineWidth = 3 / Math.min(1, view.scale); pen.stroke(); }
			if (view.scale > 0.42) { pen.fillStyle = p.op.is ? surface : text; pen.fillText(p.op.type.length > 18 ? p.op.type.slice(0, 17) + "…" : p.op.type, p.x, p.y + 1); }
			if (paid.has(p.i)) {
				const r = Math.max(5, Math.min(2 / view.scale, 12)), y = p.y + NODE.height / 2;
				pen.fillStyle = mark;
				pen.beginPath();
				pen.moveTo(p.x, y - r); pen.lineTo(p.x + r, y); pen.lineTo(p.x, y + r); pen.lineTo(p.x - r, y);
				pen.fill();
			}
		}
	}
	const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
	const zoom = (by, px = size.width / 2, py = size.height / 2) => {
		const next = Math.min(3, Math.max(0.01, view.scale * by)), k = next / view.scale;
		Object.assign(view, { scale: next, x: px - (px - view.x) * k, y: py - (py - view.y) * k });
		redraw();
	};
	const fit = (whole) => {
		const wide = size.width / (high - low), s = whole ? Math.min(wide, size.height / (tall + 40), 1.2) : Math.min(1, Math.max(wide, 0.5));
		Object.assign(view, { scale: s, x: size.width / 2 - (s * (low + high)) / 2, y: whole ? (size.height - s * (tall - NODE.height)) / 2 : 30 });
		redraw();
	};
	const centre = (p) => { view.scale = Math.max(view.scale, 0.7); view.x = size.width / 2 - p.x * view.scale; view.y = size.height / 2 - p.y * view.scale; redraw(); };
	const under = (e) => {
		const box = canvas.getBoundingClientRect(), x = (e.clientX - box.left - view.x) / view.scale, y = (e.clientY - box.top - view.y) / view.scale;
		return nodes.find((p) => Math.abs(p.x - x) <= NODE.width / 2 && Math.abs(p.y - y) <= NODE.height / 2);
	};
	const fingers = new Map();
	let moved = 0;
	canvas.addEventListener("pointerdown", (e) => { fingers.set(e.pointerId, e); moved = 0; canvas.setPointerCapture(e.pointerId); });
	canvas.addEventListener("pointermove", (e) => {
		const last = fingers.get(e.pointerId);
		if (!last) { const p = under(e); canvas.style.cursor = p ? "pointer" : "grab"; showTip(p ? `${p.op.name}\n${p.op.type}${p.op.is ? ", " + precisionWord(p.op) : ""}${paid.has(p.i) ? "\nthen: " + paid.get(p.i).join(", ") : ""}` : "", e); return; }
		moved += Math.abs(e.clientX - last.clientX) + Math.abs(e.clientY - last.clientY);
		if (fingers.size === 2) {
			const [a, b] = [...fingers.values()], other = a.pointerId === e.pointerId ? b : a, far = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY), box = canvas.getBoundingClientRect();
			zoom(far(e) / Math.max(1, far(last)), other.clientX - box.left, other.clientY - box.top);
		} else { view.x += e.clientX - last.clientX; view.y += e.clientY - last.clientY; redraw(); }
		fingers.set(e.pointerId, e);
	});
	canvas.addEventListener("pointerup", (e) => { fingers.delete(e.pointerId); const p = moved < 5 && under(e); if (p) openOp(run, p.op.name); });
	canvas.addEventListener("pointercancel", (e) => fingers.delete(e.pointerId));
	canvas.addEventListener("pointerleave", () => showTip(""));
	/* the wheel alone scrolls the page */
	canvas.addEventListener("wheel", (e) => { if (!e.ctrlKey && !e.metaKey) return; e.preventDefault(); zoom(Math.exp(-e.deltaY / 300), e.offsetX, e.offsetY); }, { passive: false });
	canvas.addEventListener("keydown", (e) => {
		const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
		if (step) { view.x += step[0]; view.y += step[1]; redraw(); } else if (e.key === "+" || e.key === "=") zoom(1.3); else if (e.key === "-") zoom(1 / 1.3); else if (e.key === "0") fit(true); else return;
		e.preventDefault();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	matchMedia("print").addEventListener("change", draw);
	new ResizeObserver(() => {
		const ratio = devicePixelRatio || 1, first = !size.width;
		size = { width: canvas.clientWidth, height: canvas.clientHeight };
		canvas.width = size.width * ratio;
		canvas.height = size.height * ratio;
		if (first && size.width) fit(true);
		draw(); /* at once: on its way to paper the page has no next frame */
	}).observe(canvas);
	const find = (words) => { found = words ? nodes.findIndex((p) => `${p.op.name} ${p.op.type}`.toLowerCase().includes(words.toLowerCase())) : -1; if (found >= 0) centre(nodes[found]); else redraw(); };
	const table = el("details", { ontoggle: (e) => { if (e.target.open && e.target.children.length < 2) e.target.append(opsTable(run, graph, paid)); } }, el("summary", {}, "The ops as a table"));
	const used = PRECISIONS.filter(([key]) => graph.ops.some((o) => o.is === key)), inputs = paid.get(-1) || [];
	return section("graph", title, `${plural(graph.ops.length, "op")}. A diamond is a place where the runtime converts between floats and integers: ${plural(graph.conversions.length, "conversion")} in all${inputs.length ? `, ${inputs.length} of them of inputs` : ""}. Drag to move, Ctrl and the wheel to zoom, click an op for its histograms.`,
		el("div", { class: "row controls" }, el("button", { type: "button", onclick: () => zoom(1.4), "aria-label": "zoom in" }, "+"), el("button", { type: "button", onclick: () => zoom(1 / 1.4), "aria-label": "zoom out" }, "−"), el("button", { type: "button", onclick: () => fit(true) }, "whole"),
			el("label", {}, "Find ", el("input", { type: "search", id: "find", placeholder: "op or type", oninput: (e) => find(e.target.value) }))),
		legend([...used.map(([, label, name]) => [label, name]), ["moves data, or part of another op", "--other"], ["conversion", "--bad"]]), canvas, table);
}
function opsTable(run, graph, paid) {
	const total = graph.ops.reduce((t, o) => t + (o.macs || 0), 0);
	return scrolling("The ops", el("table", {}, el("thead", {}, el("tr", {}, ["op", "type", "computed in", "multiply-adds", "conversions after it", "why in fp32"].map((h) => el("th", { scope: "col" }, h)))),
		el("tbody", {}, graph.ops.map((op, i) => el("tr", {}, el("td", { class: "wide" }, el("button", { type: "button", onclick: () => openOp(run, op.name) }, op.name)), el("td", {}, op.type), el("td", {}, op.is ? precisionWord(op) : "–"),
			el("td", { class: "num" }, op.macs ? percent(op.macs / total) : "–"), el("td", {}, (paid.get(i) || []).join(", ")), el("td", {}, op.why || ""))))));
}
