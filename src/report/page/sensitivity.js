/* How much each op costs, split by cause; a click shows its histograms. */
const CAUSES = [["weights", "rounding of weights", "--int16"], ["rounding", "rounding of activations", "--int8"], ["clipping", "clipping of activations", "--fp32"]];
const errorOf = (decibels) => 10 ** (-decibels / 10);

function causesOf(op) {
	const weights = op.weight_share || 0, clipping = (1 - weights) * (op.clipping_share || 0);
	return { weights, clipping, rounding: 1 - weights - clipping };
}
function whyMissing(run, part) {
	const why = run.missing && (run.missing[part] || run.missing.graph);
	return why ? el("p", { class: "note" }, "Not shown: " + why) : null;
}
function sensitivitySection(run) {
	const title = "How sensitive each op is", s = run.sensitivity;
	if (!s) return run.missing && run.missing.sensitivity ? section("sensitivity", title, null, whyMissing(run, "sensitivity")) : null;
	const all = errorOf(s.all_sqnr_db), body = el("tbody", {}), FEW = 15;
	const note = el("p", { class: "note", role: "status" });
	let way = "in", whole = false;
	const cost = (op) => (way === "in" ? errorOf(op.model_sqnr_db) : isNumber(op.without_sqnr_db) ? all - errorOf(op.without_sqnr_db) : NaN);
	const more = el("button", { type: "button", onclick: () => { whole = !whole; show(); } });
	function show() {
		const rows = s.ops.map((op) => ({ op, cost: cost(op) })).filter((r) => isNumber(r.cost)).sort((a, b) => b.cost - a.cost);
		const most = Math.max(...rows.map((r) => Math.abs(r.cost)), 1e-12), middle = Math.abs(rows[Math.floor(rows.length / 2)]?.cost || most);
		/* where one op stands out by far, the others would show no bar */
		const logarithmic = most > 100 * middle, length = (c) => (logarithmic ? Math.max(0.5, 100 + 20 * Math.log10(Math.max(Math.abs(c), 1e-30) / most)) : (100 * Math.abs(c)) / most);
		note.textContent = logarithmic ? "Bars are logarithmic: a fifth of the width is a factor of ten." : "";
		body.replaceChildren(...(whole ? rows : rows.slice(0, FEW)).map(({ op, cost: c }) => {
			const parts = causesOf(op), text = CAUSES.map(([key, label]) => `${label} ${percent(parts[key], 2)}`).join(", ");
			return el("tr", {}, el("td", {}, el("button", { type: "button", "data-op": op.name, onclick: () => openOp(run, op.name) }, op.name)), el("td", { class: "muted type" }, op.type),
				el("td", { style: "width:45%" }, el("div", { class: "track", role: "img", "aria-label": text, onmousemove: (e) => showTip(`${op.name}\n${text}`, e), onmouseleave: () => showTip("") },
					c > 0 ? CAUSES.map(([key, , name]) => el("span", { style: `width:${parts[key] * length(c)}%;background:${color(name)}` })) : el("span", { style: `width:${length(c)}%;background:${color("--good")};opacity:.5` }))),
				el("td", { class: "num" }, percent(c, 2)));
		}));
		more.textContent = whole ? "show fewer" : `show all ${rows.length}`;
		more.hidden = rows.length <= FEW;
	}
	show();
	const out = section("sensitivity", title, `The squared error of the model's output, as a share of the output itself: with this op alone quantized, or what of the error goes when this op alone goes back to fp32, for the worst ops (all quantized: ${percent(all, 2)}, ${number(s.all_sqnr_db, 3)} dB). By the default plan, on a few batches of the calibration data. Click an op for its histograms.`,
		el("div", { class: "row controls" }, choice("Which way", [["in", "only this op"], ["out", "all but this op"]], way, (v) => { way = v; show(); })),
		legend([...CAUSES.map(([, label, name]) => [label, name]), ["better when quantized", "--good"]]), el("table", { class: "bars" }, body), note, el("div", { class: "controls" }, more));
	out.classList.add("long");
	return out;
}
