/* Accuracy against latency or size, with the Pareto front and the target. */
const AXES = { latency_ms: ["latency", "latency of one run, ms", (t) => t.latency_ms], size_bytes: ["size", "size, MB", (t) => (t.size_bytes ? t.size_bytes / 1e6 : NaN)] };

function paretoFront(points, up) {
	const sorted = [...points].filter((p) => isNumber(p.t.accuracy)).sort((a, b) => a.x - b.x || (up ? b.y - a.y : a.y - b.y));
	let last = up ? -Infinity : Infinity;
	return sorted.filter((p) => { const better = up ? p.y > last : p.y < last; if (better) last = p.y; return better; });
}
function stairs(front, x, y, right) {
	let d = "";
	front.forEach((p, i) => { d += i ? `H${x(p.x)}V${y(p.y)}` : `M${x(p.x)},${y(p.y)}`; });
	return front.length ? d + `H${right}` : "";
}
function drawMark(p, x, y, name, isBest) {
	const cx = x(p.x), cy = y(p.y), parts = [], within = (v) => y(Math.min(Math.max(v, y.low), y.high));
	if (p.low !== p.high) parts.push(svg("line", { x1: cx, x2: cx, y1: within(p.low), y2: within(p.high), stroke: name, "stroke-width": 2, opacity: 0.55 }));
	if (isBest) parts.push(svg("circle", { cx, cy, r: 10, fill: "none", stroke: name, "stroke-width": 1.5 }));
	parts.push(svg("circle", { class: "mark", cx, cy, r: 5.5, fill: p.t.met ? name : color("--surface"), stroke: name, "stroke-width": 2 }));
	return parts;
}
/* Labels; one that would lie on an earlier one is left out if it says the same, else it goes above. */
function beside() {
	const taken = [];
	return (x, y, attributes, text) => {
		const near = () => taken.find((t) => Math.abs(t.x - x) < 70 && Math.abs(t.y - y) < 13);
		if (near() && near().text === text) return "";
		while (near()) y = near().y - 14;
		taken.push({ x, y, text });
		return svg("text", { x, y, ...attributes }, text);
	};
}
/* names: a colour per run */
function tradeoff(runs, names) {
	const note = el("p", { class: "note", "aria-live": "polite" }), first = runs[0], up = first.higher_is_better !== false;
	let by = runs.some((r) => r.trials.some((t) => isNumber(t.latency_ms))) ? "latency_ms" : "size_bytes";
	const shown = () => runs.flatMap((run, k) => run.trials.filter((t) => !t.failed).map((t) => {
		const exact = isNumber(t.accuracy), low = exact ? t.accuracy : t.accuracy_low, high = exact ? t.accuracy : t.accuracy_high;
		return { run, k, t, x: AXES[by][2](t), low, high, y: exact ? t.accuracy : up ? high : low };
	})).filter((p) => isNumber(p.x) && isNumber(p.low) && isNumber(p.high));
	const picture = plot("Accuracy against " + AXES[by][0], 380, (out, width, height) => {
		const points = shown(), all = runs.reduce((n, r) => n + r.trials.length, 0);
		note.textContent = points.length < all ? `Not shown: ${all - points.length} of ${plural(all, "trial")}, ${by === "latency_ms" ? "whose latency was not measured, because only trials that meet the target are timed" : "which failed or were not evaluated"}.` : "";
		if (!points.length) { out.append(svg("text", { x: 20, y: 40 }, "Nothing was measured yet.")); return; }
		const base = runs.map((r, k) => ({ k, x: by === "latency_ms" ? (r.result ? r.result.baseline.latency_ms : r.baseline_latency_ms) : r.baseline_size_bytes / 1e6, y: r.baseline })).filter((p) => isNumber(p.x) && isNumber(p.y));
		const size = { left: 62, top: 26, right: width - 16, bottom: height - 46 };
		const xs = [...points, ...base].map((p) => p.x), ys = [...points.map((p) => p.y), ...base.map((p) => p.y), ...runs.map((r) => r.target).filter(isNumber)];
		const pad = (low, high) => [low - 0.06 * (high - low || Math.abs(low) || 1), high + 0.06 * (high - low || Math.abs(high) || 1)];
		const x = scale(...pad(Math.min(...xs), Math.max(...xs)), size.left, size.right), y = scale(...pad(Math.min(...ys), Math.max(...ys)), size.bottom, size.top);
		axes(out, x, y, size, { x: AXES[by][1], y: first.metric });
		const label = beside();
		runs.forEach((r, k) => {
			if (isNumber(r.target)) out.append(svg("line", { class: "target", x1: size.left, x2: size.right, y1: y(r.target), y2: y(r.target) }),
				label(size.left + 4, y(r.target) - 5, { style: "fill:var(--bad)" }, runs.some((other) => other.target !== r.target) ? `target of ${k + 1}` : "target"));
			const front = paretoFront(points.filter((p) => p.k === k), up);
			out.append(svg("path", { class: "front", d: stairs(front, x, y, size.right), style: `stroke:${names[k]}` }));
		});
		base.forEach((p) => out.append(svg("path", { d: `M${x(p.x) - 6},${y(p.y)}h12M${x(p.x)},${y(p.y) - 6}v12`, stroke: color("--fp32"), "stroke-width": 2.5 }),
			label(x(p.x) + (x(p.x) > width - 80 ? -10 : 10), y(p.y) - 7, { class: "strong", "text-anchor": x(p.x) > width - 80 ? "end" : "start" }, "fp32")));
		points.sort((a, b) => (a.t.trial === a.run.best) - (b.t.trial === b.run.best));
		points.forEach((p) => out.append(clickable(svg("g", { "data-trial": p.t.trial }, drawMark(p, x, y, names[p.k], p.t.trial === p.run.best)),
			(runs.length > 1 ? `run ${p.k + 1}, ` : "") + trialLabel(p.run, p.t), () => openTrial(p.run, p.t))));
	});
	return section("tradeoff", "Accuracy against latency and size", "A filled circle meets the target; the ring is the best. A bar is a trial whose evaluation ended as soon as its verdict was certain: its accuracy lies within. The line is the Pareto front. Click a trial for its plan.",
		el("div", { class: "row controls" }, "Against", choice("What accuracy is drawn against", Object.entries(AXES).map(([k, [name]]) => [k, name]), by, (v) => { by = v; picture.redraw(); })),
		runs.length > 1 && legend(runs.map((r, k) => [`${k + 1}: ${baseName(r.workspace)}`, names[k].slice(4, -1)])), picture, note);
}
