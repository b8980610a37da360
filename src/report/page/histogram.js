/* Histograms of what an op reads, makes and weighs, fp32 over quantized, with the range and the grid of the integers. */
/* Counts per unit of width, so that histograms of other buckets compare. */
function densities(h) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", out = [];
	for (let i = 0; i < h.counts.length; i += 2) out.push(Math.expm1(((digits.indexOf(h.counts[i]) * 64 + digits.indexOf(h.counts[i + 1])) / 4095) * Math.log1p(Math.max(h.most, 1))) / h.width);
	return out;
}
function outline(h, x, y) {
	let d = `M${x(h.from)},${y(0)}`;
	densities(h).forEach((c, i) => { d += `V${y(c)}H${x(h.from + (i + 1) * h.width)}`; });
	return d + `V${y(0)}`;
}
function histogramPlot(label, h) {
	if (!h || (!h.before && !h.after)) return null;
	const both = [h.before, h.after].filter(Boolean), clips = isNumber(h.low) ? [h.low, h.high] : [];
	return plot(label, 200, (out, width, height) => {
		const ends = both.flatMap((b) => [b.from, b.from + (b.counts.length / 2) * b.width]), low = Math.min(...ends), high = Math.max(...ends), pad = 0.04 * (high - low);
		const x = scale(low - pad, high + pad, 10, width - 10), unit = Math.min(...both.map((b) => b.width));
		const most = Math.max(...both.flatMap(densities)), y = (c) => height - 26 - (Math.log1p(c * unit) / Math.log1p(most * unit)) * (height - 44);
		const step = isNumber(h.scale) ? (x(h.scale) - x(0)) : 0;
		if (step > 2.5) for (let q = Math.ceil((h.low) / h.scale - 1e-6); q * h.scale <= h.high + 1e-12; q++) if (x(q * h.scale) >= 10 && x(q * h.scale) <= width - 10)
			out.append(svg("line", { class: "gridline", x1: x(q * h.scale), x2: x(q * h.scale), y1: 18, y2: height - 26 }));
		if (h.before) out.append(svg("path", { d: outline(h.before, x, y), fill: color("--fp32"), opacity: 0.35 }));
		if (h.after) out.append(svg("path", { d: outline(h.after, x, y), fill: "none", stroke: color("--int8"), "stroke-width": 1.5 }));
		clips.filter((c) => c >= x.low && c <= x.high).forEach((c, i) => out.append(svg("line", { class: "target", x1: x(c), x2: x(c), y1: 8, y2: height - 26 }),
			svg("text", { x: x(c) + (i ? -4 : 4), y: 14, "text-anchor": i ? "end" : "start", style: "fill:var(--bad)" }, number(c, 3))));
		for (const v of ticks(x.low, x.high, Math.max(2, Math.floor(width / 90)))) out.append(svg("text", { x: x(v), y: height - 8, "text-anchor": "middle" }, number(v, 3)));
		out.append(svg("line", { class: "axis", x1: 10, x2: width - 10, y1: height - 26, y2: height - 26 }));
	});
}
function histogramsOf(run, name) {
	const h = run.histograms;
	if (!h) return [];
	const [reads, makes] = h.ops[name] || [], weight = h.weights[name], out = [];
	const about = (v) => `${v.dtype}, scale ${number(v.scale, 3)}, zero point ${v.zero}, ${number(v.low, 3)} to ${number(v.high, 3)}`;
	for (const [what, value] of [["What it reads", reads], ["What it makes", makes]]) {
		const v = value && h.values[value];
		if (v) out.push(el("h3", {}, `${what}: ${value}`), el("p", { class: "note" }, about(v)), histogramPlot(`${what}: histogram`, v) || el("p", { class: "note" }, "No histogram: the run's data could not be opened."));
	}
	if (weight) out.push(el("h3", {}, "Its weights"), el("p", { class: "note" }, `${weight.dtype}, ${weight.per_channel ? "a scale per channel" : "one scale"}`), histogramPlot("Weights: histogram", weight));
	if (out.length) out.unshift(legend([["fp32", "--fp32"], ["quantized, as the best trial has it", "--int8"], ["range of the integers", "--bad"]]), el("p", { class: "note" }, "Heights are logarithms of counts."));
	return out;
}
function openOp(run, name) {
	const ops = (run.graph && run.graph.ops) || [], at = ops.findIndex((o) => o.name === name), op = ops[at] || {};
	const s = run.sensitivity && run.sensitivity.ops.find((o) => o.name === name), total = ops.reduce((t, o) => t + (o.macs || 0), 0);
	const paid = at < 0 ? [] : conversionsOf(run.graph).get(at) || [];
	const facts = [["type", op.type || (s && s.type)], ["in the best model", precisionWord(op)], ["why in fp32", op.why], ["multiply-adds", op.macs ? percent(op.macs / total) : null],
		["conversions after it", paid.length ? paid.join(", ") : null],
		["output error, alone", s && isNumber(s.sqnr_db) ? `${number(s.sqnr_db, 3)} dB of its own output, ${number(s.model_sqnr_db, 3)} dB of the model's` : null],
		["causes", s ? CAUSES.map(([key, label]) => `${label} ${percent(causesOf(s)[key], 2)}`).join(", ") : null]].filter(([, v]) => v);
	openDetail(name, el("dl", {}, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])), histogramsOf(run, name));
}
