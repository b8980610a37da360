/* All that it takes to run it again. */
function reproduce(run) {
	const prints = Object.entries(run.fingerprints || {}).filter(([, v]) => v);
	const facts = [["model", run.model], ["workspace", run.workspace], ["started", run.started], ["strategy", run.strategy],
		["criterion", `${run.criterion}, ${run.criterion === "relative" ? percent(run.tolerance) : number(run.tolerance)} may be lost`], ["seed", run.seed],
		["versions", `fettle ${run.fettle_version}, ONNX Runtime ${run.runtime_version}`], ["CPU", run.measured_on],
		...prints.map(([k, v]) => [`fingerprint of the ${k}`, v]), ...fedRows(run)];
	const from = run.folder ? `cd ${quoted(run.folder)}\n` : "";
	return section("reproduce", "To reproduce it", "The same model, data, settings and seed give the same sequence of plans.",
		run.own && el("p", { class: "warning" }, `Its ${run.own} came from the program that began it: run it there.`),
		el("h3", {}, "The run"), copyable(from + run.command),
		el("h3", {}, "Its result again, without data"), copyable(`fettle recover ${quoted(run.workspace)} -o model.onnx`),
		el("h3", {}, "More trials"), copyable(`fettle resume ${quoted(run.workspace)} --max-trials ${Math.max(100, 2 * run.trials.length)}`),
		el("dl", {}, facts.map(([k, v]) => [el("dt", {}, k), el("dd", {}, String(v))])));
}
function fedRows(run) {
	return ((run.result && run.result.fed) || []).map((f) => [`${f.purpose} data`, `${f.data}, ${f.samples} samples: ${f.array} → ${f.input} (${f.dtype}, ${number(f.min)} to ${number(f.max)})`]);
}
