/* One trial: what it changed, its plan, how to get its model. */
function planOf(run, t) {
	const { width, ops, options, rests } = run.plans, groups = new Map();
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	if (typeof t.plan !== "string") return { groups: [], rest: {} };
	ops.forEach((name, i) => {
		let id = 0;
		for (let k = 0; k < width; k++) id = id * 64 + digits.indexOf(t.plan[width * i + k]);
		const words = options[id] || "as by default";
		groups.set(words, [...(groups.get(words) || []), name]);
	});
	return { groups: [...groups].sort((a, b) => b[1].length - a[1].length), rest: rests[t.rest] || {} };
}
function restRows(rest) {
	const rows = [];
	for (const [key, value] of Object.entries(rest)) {
		if (value && typeof value === "object" && !Array.isArray(value)) {
			const on = Object.entries(value).filter(([, v]) => v !== false && v !== null);
			if (on.length) rows.push([key, on.map(([k, v]) => (v === true ? k : `${k}: ${typeof v === "object" ? JSON.stringify(v) : v}`)).join(", ")]);
		} else rows.push([key, typeof value === "object" ? JSON.stringify(value) : String(value)]);
	}
	return rows;
}
const quoted = (word) => (/^[\w./:=,+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
const recoverLine = (run, t) => `fettle recover ${quoted(run.workspace)} --trial ${t.trial} -o trial-${t.trial}.onnx`;
function trialLabel(run, t) {
	return `trial ${t.trial}, ${t.stage}: ${run.metric} ${accuracyText(t)}${isNumber(t.latency_ms) ? ", " + milliseconds(t.latency_ms) : ""}${t.failed ? ", failed" : t.met ? ", met" : ", not met"}${t.trial === run.best ? ", the best" : ""}`;
}
function openTrial(run, t) {
	const { groups, rest } = planOf(run, t);
	const facts = [["stage", t.stage], ["verdict", t.failed ? "failed: " + t.why : t.met ? "meets the target" : "does not meet the target"],
		[run.metric, accuracyText(t) + (isEarly(t) ? " (the evaluation ended once the verdict was certain)" : "")],
		...Object.entries(t.metrics || {}).map(([k, v]) => [k, score(v)]),
		["loss", isNumber(t.loss) ? (run.criterion === "relative" ? percent(t.loss) : number(t.loss)) : "–"], ["latency", milliseconds(t.latency_ms)], ["size", bytes(t.size_bytes || NaN)],
		["samples", `${t.samples} evaluated`], ["time", `${seconds(t.seconds)}, ended ${t.finished}`]];
	openDetail(`Trial ${t.trial}${t.trial === run.best ? ", the best" : ""}`,
		el("dl", {}, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
		el("h3", {}, "What it changed"), el("p", {}, t.changed || "it is the first: the defaults"),
		el("h3", {}, "To get its model"), copyable(recoverLine(run, t)),
		el("h3", {}, "Its plan"),
		groups.map(([words, ops]) => el("details", { open: groups.length < 4 && ops.length < 12 }, el("summary", {}, `${plural(ops.length, "op")}: ${words}`), el("p", { class: "note" }, ops.join(", ")))),
		el("dl", {}, restRows(rest).map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])));
}
