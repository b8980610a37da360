/* The verdict on one screen. */
function headline(run, best) {
	const result = run.result, parts = [];
	if (!best) return run.stop ? "The run ended without a trial" : "No trial has ended yet";
	const fast = result ? result.best.speedup : run.speedup;
	if (isNumber(fast)) parts.push((result ? !result.faster : fast <= 1) ? `no faster than fp32 (${fast.toFixed(2)}×)` : `${fast.toFixed(2)}× as fast as fp32`);
	const size = result ? result.best.size_bytes : best.size_bytes;
	if (size && run.baseline_size_bytes) parts.push(`${number(run.baseline_size_bytes / size, 2)}× smaller`);
	parts.push(`${run.metric} ${accuracyText(best)} against ${score(run.baseline)}`);
	return parts.join(", ");
}
/* fp32 at one end, what may be lost at the other, the best between them */
function lossBar(run, best) {
	if (!isNumber(best.accuracy) || !isNumber(run.target) || run.target === run.baseline) return null;
	const used = (run.baseline - best.accuracy) / (run.baseline - run.target);
	const low = Math.min(0, used), high = Math.max(1, used), at = (v) => 4 + ((v - low) / (high - low)) * 192;
	const text = used <= 0 ? "nothing of the tolerance is used" : `${percent(used, 2)} of the tolerance is used`;
	return [svg("svg", { viewBox: "0 0 200 26", width: 200, height: 26, role: "img", "aria-label": text },
		svg("line", { x1: at(low), x2: at(high), y1: 9, y2: 9, stroke: color("--line"), "stroke-width": 6, "stroke-linecap": "round" }),
		svg("line", { x1: at(0), x2: at(1), y1: 9, y2: 9, stroke: color("--shade"), "stroke-width": 6 }),
		svg("line", { x1: at(1), x2: at(1), y1: 1, y2: 17, stroke: color("--bad"), "stroke-width": 2 }),
		svg("line", { x1: at(0), x2: at(0), y1: 1, y2: 17, stroke: color("--muted"), "stroke-width": 2 }),
		svg("circle", { cx: at(used), cy: 9, r: 6, fill: color(used <= 1 + 1e-9 ? "--good" : "--bad") })), el("p", {}, text)];
}
function precisionBar(ops) {
	const kinds = PRECISIONS.filter(([key]) => ops[key]), total = kinds.reduce((n, [key]) => n + ops[key], 0);
	return [el("div", { class: "track", role: "img", "aria-label": kinds.map(([key, label]) => `${ops[key]} ${label}`).join(", ") },
		kinds.map(([key, , name]) => el("span", { style: `width:${(100 * ops[key]) / total}%;background:${color(name)}` }))),
	legend(kinds.map(([key, label, name]) => [`${ops[key]} ${label}`, name]))];
}
function card(title, big, ...rest) {
	return el("div", { class: "card" }, el("h3", {}, title), el("div", { class: "big" }, big), rest.flat(Infinity).map((r) => (typeof r === "string" ? el("p", {}, r) : r)));
}
function staysInFp32(result) {
	if (!result || !result.fp32_ops.length) return null;
	const groups = new Map();
	for (const op of result.fp32_ops) groups.set(op.why, [...(groups.get(op.why) || []), op]);
	const rows = [...groups].map(([why, ops]) => ({ why, ops, share: ops.reduce((s, o) => s + o.share, 0) })).sort((a, b) => b.share - a.share || b.ops.length - a.ops.length);
	return [el("h3", {}, "What stays in fp32, and why"), scrolling("Ops in fp32", el("table", {},
		el("thead", {}, el("tr", {}, ["why", "ops", "multiply-adds"].map((h, i) => el("th", { scope: "col", class: i === 2 ? "num" : null }, h)))),
		el("tbody", {}, rows.map((r) => el("tr", {}, el("td", {}, r.why),
			el("td", { class: "wide" }, r.ops.slice(0, 6).map((o) => o.name).join(", "), r.ops.length > 6 && ` and ${r.ops.length - 6} more`),
			el("td", { class: "num" }, percent(r.share)))))))];
}
function measuredOn(run) {
	const r = run.result, speeds = r ? r.speeds || [] : [];
	const threads = !r || r.latency_threads === undefined ? null : r.latency_threads ? plural(r.latency_threads, "thread") : "all cores";
	const on = [`CPU ${run.measured_on}` + (run.cpu !== run.measured_on ? `, planned for ${run.cpu}` : ""), threads && `latency on ${threads}`,
		r && r.instances > 1 && `${r.instances} sessions at once`, speeds.length && "batch " + speeds.map((s) => s.batch).join(", ")];
	return on.filter(Boolean).join("; ");
}
function verdict(run) {
	const best = trialOf(run, run.best), r = run.result, cards = [];
	const badge = el("span", { class: "badge " + (run.met ? "good" : "bad") }, run.met ? "target met" : best ? "target not met" : "no result yet");
	const state = run.stop ? `ended: ${run.stop.replace(/_/g, " ")}` : run.running ? "in progress" : "cut off: 'fettle resume' continues it";
	if (best) {
		const inter = run.accuracy_interval;
		cards.push(card(run.metric, accuracyText(best), `fp32 ${score(run.baseline)}, target ${score(run.target)}`,
			inter ? `95 % interval ${score(inter[0])} to ${score(inter[1])} (${run.eval_samples} samples)` : [],
			r && r.holdout ? `holdout ${score(r.holdout.accuracy)}` + (isNumber(r.holdout.low) ? ` (${score(r.holdout.low)} to ${score(r.holdout.high)})` : "") : [],
			lossBar(run, best) || []));
		const fast = r ? r.best : run;
		cards.push(card("speed-up against fp32", isNumber(fast.speedup) ? fast.speedup.toFixed(2) + "×" : "–",
			isNumber(fast.speedup_low) && fast.speedup_low < fast.speedup_high ? `99 % interval ${fast.speedup_low.toFixed(2)} to ${fast.speedup_high.toFixed(2)}` : "not measured yet",
			r ? `${milliseconds(r.baseline.latency_ms)} → ${milliseconds(r.best.latency_ms)}` : [],
			r && isNumber(r.predicted_speedup) ? `predicted by profiles: ${r.predicted_speedup.toFixed(2)}×` : [],
			r ? (r.speeds || []).slice(1).map((s) => `batch ${s.batch}: ${speedup(s.speedup, s.speedup_low, s.speedup_high)}`) : []));
		cards.push(card("size", bytes(r ? r.best.size_bytes : best.size_bytes), `fp32 ${bytes(run.baseline_size_bytes)}`));
		if (r) cards.push(card("multiply-adds in integers", percent(r.best.int8_share), precisionBar(r.best.ops)));
	}
	return section("verdict", "The verdict", null, el("p", { class: "headline" }, headline(run, best)),
		el("p", {}, badge, ` after ${plural(run.trials.length, "trial")}, ${state}. ${measuredOn(run)}.`),
		el("div", { class: "cards" }, cards),
		r && [r.no_faster, r.would_help, r.almost_nothing, r.untried].filter(Boolean).map((t) => el("p", { class: "warning" }, t)),
		r && (r.warnings || []).map((t) => el("p", { class: "warning" }, t)),
		staysInFp32(r));
}
