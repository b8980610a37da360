/* The trials in time, in as many rows as ran side by side; where the time went, and what was saved. */
function lanes(run) {
	const second = (text) => Date.parse(text) / 1000, start = second(run.started), ends = new Map();
	/* Times are recorded to the second: trials of one row are moved so that they do not overlap by less than that. */
	return run.trials.map((t) => {
		const took = t.seconds || 0, end = isNumber(second(t.finished)) ? second(t.finished) - start : NaN;
		let from = isNumber(end) ? Math.max(0, end - took) : 0, lane = isNumber(t.worker) ? 1e6 * (t.rank || 0) + t.worker : null;
		if (lane === null) for (lane = 0; (ends.get(lane) || 0) > from + 1.05; lane++);
		from = Math.max(from, ends.get(lane) || 0);
		ends.set(lane, from + took);
		return { t, lane, from, to: from + took };
	});
}
function phasesOf(t) {
	const known = PHASES.slice(0, 4).map(([key]) => t[key] || 0), sum = known.reduce((a, b) => a + b, 0), whole = Math.max(t.seconds || 0, 1e-9);
	const fit = sum > whole ? whole / sum : 1;
	return [...known.map((s) => s * fit), Math.max(0, whole - sum * fit)];
}
function timeTable(run) {
	const r = run.result, total = r ? r.seconds.total : run.trials.reduce((s, t) => s + (t.seconds || 0), 0);
	const parts = r ? ["prepare", "calibrate", "rank", "quantize", "session", "evaluate", "latency"].map((k) => [k, r.seconds[k]])
		: PHASES.slice(0, 4).map(([key, label]) => [label, run.trials.reduce((s, t) => s + (t[key] || 0), 0)]);
	const saved = r ? Object.entries(r.saved_passes).filter(([, v]) => v > 0) : [];
	const words = { early: "verdicts that were certain early", cuts: "plans that begin as another did", repeated: "plans that gave a model that was tried", beside: "trials side by side" };
	return el("div", { class: "cards" },
		el("div", { class: "card" }, el("h3", {}, `Where ${seconds(total)} went`), el("table", {}, el("tbody", {}, parts.map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", { class: "num" }, seconds(v)), el("td", { class: "num" }, percent(v / total, 2))))))),
		el("div", { class: "card" }, el("h3", {}, "What was saved"), saved.length ? el("table", {}, el("tbody", {}, saved.map(([k, v]) => el("tr", {}, el("th", { scope: "row", style: "white-space:normal" }, words[k] || k), el("td", { class: "num" }, `${number(v, 3)} passes`))))) : el("p", {}, r ? "nothing" : "known when the run has ended"),
			isNumber(run.fp32_pass_s) && el("p", {}, `One pass is an evaluation of the fp32 model: ${seconds(run.fp32_pass_s)}.`)));
}
function timeline(run) {
	const early = run.trials.filter(isEarly).length, placed = lanes(run), order = [...new Set(placed.map((p) => p.lane))].sort((a, b) => a - b);
	const named = new Map(placed.filter((p) => isNumber(p.t.worker)).map((p) => [p.lane, isNumber(p.t.rank) ? `rank ${p.t.rank}.${p.t.worker}` : `worker ${p.t.worker}`]));
	const rowHeight = 26, height = 46 + rowHeight * Math.max(1, order.length);
	const picture = plot("The trials in time", height, (out, width) => {
		const left = order.length > 1 ? 62 : 10, end = Math.max(1e-3, ...placed.map((p) => p.to)), x = scale(0, end, left, width - 10);
		for (const v of ticks(0, end, Math.max(2, Math.floor(width / 120)))) out.append(svg("line", { class: "gridline", x1: x(v), x2: x(v), y1: 4, y2: height - 36 }), svg("text", { x: x(v), y: height - 20, "text-anchor": "middle" }, seconds(v)));
		if (order.length > 1) order.forEach((lane, i) => out.append(svg("text", { x: 4, y: 22 + i * rowHeight }, named.get(lane) || `row ${i + 1}`)));
		for (const p of placed) {
			const top = 6 + order.indexOf(p.lane) * rowHeight, parts = phasesOf(p.t), wide = Math.max(1.5, x(p.to) - x(p.from) - 1);
			let at = x(p.from);
			const bars = parts.map((s, i) => { const w = (wide * s) / parts.reduce((a, b) => a + b, 0), bar = svg("rect", { x: at, y: top, width: Math.max(w, 0), height: 18, fill: color(PHASES[i][2]) }); at += w; return w > 0.2 ? bar : null; });
			const mark = p.t.failed ? svg("text", { x: x(p.from) + wide / 2, y: top + 14, "text-anchor": "middle", style: "fill:var(--bad);font-weight:700" }, "✕")
				: isEarly(p.t) ? svg("path", { d: `M${at},${top - 3}l-5,0l5,7z`, fill: color("--text") }) : null;
			out.append(clickable(svg("g", { "data-trial": p.t.trial }, bars, svg("rect", { class: "mark", x: x(p.from), y: top, width: wide, height: 18, fill: "transparent", stroke: p.t.trial === run.best ? color("--text") : "none", "stroke-width": 2 }), mark),
				`${trialLabel(run, p.t)}, ${seconds(p.t.seconds)}${isEarly(p.t) ? ", verdict certain early" : ""}`, () => openTrial(run, p.t)));
		}
	});
	return section("timeline", "The trials in time", `${plural(run.trials.length, "trial")}, ${early} with a verdict that was certain before the evaluation's end (marked at the top right corner). The best has a frame. Times are recorded to the second.`,
		legend(PHASES.map(([, label, name]) => [label, name])), picture, timeTable(run));
}
