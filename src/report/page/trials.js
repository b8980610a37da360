/* The table of trials: sorted by any column, filtered by words and kind. */
function trialsTable(run) {
	const columns = [["trial", (t) => t.trial, (t) => t.trial, "num"], ["stage", (t) => t.stage, (t) => t.stage],
		[run.metric, (t) => (isNumber(t.accuracy) ? t.accuracy : t.accuracy_high), accuracyText, "num"],
		["loss", (t) => t.loss, (t) => (run.criterion === "relative" ? percent(t.loss) : number(t.loss)), "num"],
		["latency", (t) => t.latency_ms, (t) => milliseconds(t.latency_ms), "num"], ["size", (t) => t.size_bytes, (t) => bytes(t.size_bytes || NaN), "num"],
		["samples", (t) => t.samples, (t) => t.samples, "num"], ["time", (t) => t.seconds, (t) => seconds(t.seconds), "num"],
		["verdict", verdictWord, verdictWord], ["changed", (t) => t.changed, (t) => t.changed, "wide"]];
	function verdictWord(t) {
		return [t.failed ? "failed" : t.met ? "met" : "not met", t.trial === run.best && "best", t.pareto && "on the front", isEarly(t) && "early"].filter(Boolean).join(", ");
	}
	const kinds = { all: () => true, met: (t) => t.met, "not met": (t) => !t.met && !t.failed, failed: (t) => t.failed, "on the front": (t) => t.pareto, early: isEarly };
	const body = el("tbody", {}), count = el("span", { class: "muted", role: "status" });
	let sort = 0, down = false, words = "", kind = "all";
	const heads = columns.map(([name, , , cls], i) => el("th", { scope: "col", class: cls === "num" ? "num" : null }, el("button", { type: "button", onclick: () => { down = sort === i ? !down : false; sort = i; show(); } }, name)));
	function compare(a, b) {
		const x = columns[sort][1](a), y = columns[sort][1](b), none = (v) => v === null || v === undefined || v === "" || Number.isNaN(v);
		if (none(x) || none(y)) return none(x) - none(y); /* last, whichever way */
		return (x < y ? -1 : x > y ? 1 : a.trial - b.trial) * (down ? -1 : 1);
	}
	function show() {
		const rows = run.trials.filter((t) => kinds[kind](t) && (!words || `${t.stage} ${t.changed} ${t.why} ${verdictWord(t)}`.toLowerCase().includes(words))).sort(compare);
		heads.forEach((h, i) => { if (i === sort) h.setAttribute("aria-sort", down ? "descending" : "ascending"); else h.removeAttribute("aria-sort"); });
		body.replaceChildren(...rows.map((t) => el("tr", { class: t.trial === run.best ? "best" : null, "data-trial": t.trial }, columns.map(([, , text, cls], i) => el("td", { class: cls },
			i ? text(t) : el("button", { type: "button", "aria-label": `trial ${t.trial}: its plan`, onclick: () => openTrial(run, t) }, String(t.trial)))))));
		count.textContent = rows.length === run.trials.length ? plural(rows.length, "trial") : `${rows.length} of ${plural(run.trials.length, "trial")}`;
	}
	show();
	const out = section("trials", "All trials", null,
		el("div", { class: "row controls" }, el("label", {}, "Filter ", el("input", { type: "search", id: "filter", placeholder: "op, stage, words", oninput: (e) => { words = e.target.value.toLowerCase(); show(); } })),
			el("label", {}, "Show ", el("select", { id: "kind", onchange: (e) => { kind = e.target.value; show(); } }, Object.keys(kinds).map((k) => el("option", {}, k)))), count),
		scrolling("All trials", el("table", {}, el("thead", {}, el("tr", {}, heads)), body)));
	out.classList.add("long");
	return out;
}
