/* Puts the sections together, for one run or for several that are compared. */
const SHORT = { comparison: "Compared", verdict: "Verdict", sensitivity: "Sensitivity", tradeoff: "Trade-off", timeline: "Timeline", graph: "Graph", profile: "Time by op", trials: "Trials", reproduce: "Reproduce" };
const RUN_COLORS = ["--int8", "--fp32", "--dynamic", "--int16", "--weight"];

function comparison(runs) {
	const rows = [["model", (r) => baseName(r.model)], ["strategy", (r) => r.strategy], ["state", (r) => (r.stop || (r.running ? "in progress" : "cut off")).replace(/_/g, " ")], ["target", (r) => (r.met ? "met" : "not met")],
		["accuracy", (r) => `${r.metric} ${accuracyText(trialOf(r, r.best) || {})}`], ["fp32", (r) => score(r.baseline)],
		["speed-up", (r) => speedup(r.speedup, r.speedup_low, r.speedup_high)], ["latency", (r) => (r.result ? milliseconds(r.result.best.latency_ms) : "–")],
		["size", (r) => bytes((trialOf(r, r.best) || {}).size_bytes)], ["in integers", (r) => (r.result ? percent(r.result.best.int8_share) : "–")],
		["trials", (r) => r.trials.length], ["time", (r) => seconds(r.result ? r.result.seconds.total : r.trials.reduce((s, t) => s + t.seconds, 0))], ["CPU", (r) => r.measured_on], ["seed", (r) => r.seed]];
	return section("comparison", "Compared", "Latencies and speed-ups were measured in their own run: compare them across runs only where CPU, threads and batch are the same.",
		scrolling("Runs compared", el("table", {}, el("thead", {}, el("tr", {}, el("td", {}), runs.map((r, k) => el("th", { scope: "col" }, `${k + 1}: ${baseName(r.workspace)}`)))),
			el("tbody", {}, rows.map(([name, text]) => { const cells = runs.map((r) => String(text(r))); return el("tr", {}, el("th", { scope: "row" }, name), cells.map((c) => el("td", { style: cells.some((d) => d !== cells[0]) ? "font-weight:600" : null }, c))); })))));
}
function sectionsOf(run, alone) {
	return [verdict(run), sensitivitySection(run), alone && tradeoff([run], [color("--int8")]), timeline(run), graphSection(run), profileSection(run), trialsTable(run), reproduce(run)].filter(Boolean);
}
function show(sections) {
	document.getElementById("main").replaceChildren(...sections);
	document.getElementById("nav").replaceChildren(el("ul", {}, sections.filter((s) => s.id).map((s) => el("li", {}, el("a", { href: "#" + s.id }, SHORT[s.id])))));
}
function start() {
	const runs = data.runs, many = runs.length > 1;
	const title = many ? runs.map((r) => baseName(r.workspace)).join(" and ") : baseName(runs[0].model);
	document.title = "fettle report: " + title;
	document.getElementById("title").textContent = title;
	document.getElementById("subtitle").textContent = many ? `${plural(runs.length, "run")} compared` : `${runs[0].job === "search" ? "search" : "tune"}, strategy ${runs[0].strategy}, started ${runs[0].started}, ${runs[0].workspace}`;
	document.getElementById("footer").textContent = `Made ${data.made} by fettle ${data.fettle} with ONNX Runtime ${data.runtime}.`;
	if (!many) { show(sectionsOf(runs[0], true)); return; }
	const common = [comparison(runs), tradeoff(runs, runs.map((r, k) => color(RUN_COLORS[k % RUN_COLORS.length])))];
	const picker = el("div", { class: "row controls" }, "Details of", choice("Which run", runs.map((r, k) => [k, `${k + 1}: ${baseName(r.workspace)}`]), 0, (k) => show([...common, picker, ...sectionsOf(runs[k], false)])));
	show([...common, picker, ...sectionsOf(runs[0], false)]);
}
document.addEventListener("DOMContentLoaded", () => {
	start();
	document.documentElement.setAttribute("data-ready", "yes");
	/* of a run in progress: again, unless somebody is reading a detail */
	if (data.refresh) setInterval(() => { if (!document.getElementById("detail").open) location.reload(); }, 1000 * data.refresh);
});
