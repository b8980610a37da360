/* Where the time goes by op type, before and after. */
function profileSection(run) {
	const p = run.profile, title = "Time by op type";
	if (!p) return run.missing && run.missing.profile ? section("profile", title, null, whyMissing(run, "profile")) : null;
	const types = new Map(), sum = (rows) => rows.reduce((s, r) => s + r.ms, 0);
	for (const [side, rows] of [["before", p.before], ["after", p.after]]) for (const r of rows) types.set(r.op, { ...(types.get(r.op) || {}), [side]: r });
	const all = [...types].map(([op, t]) => ({ op, ...t, most: Math.max(t.before ? t.before.ms : 0, t.after ? t.after.ms : 0) })).sort((a, b) => b.most - a.most), most = all.length ? all[0].most : 1;
	const bar = (r, name, label) => el("div", { class: "track", style: "height:11px;margin:1px 0", role: "img", "aria-label": `${label} ${r ? milliseconds(r.ms) : "none"}` }, r && el("span", { style: `width:${(100 * r.ms) / most}%;background:${color(name)}` }));
	return section("profile", title, `From the runtime's profile of one run, ${p.threads ? plural(p.threads, "thread") : "all cores"}, batch ${p.batch}: ${milliseconds(sum(p.before))} → ${milliseconds(sum(p.after))} in all. Profiling itself costs time, so that sums exceed latencies.`,
		legend([["fp32", "--fp32"], ["the best model", "--int8"]]),
		scrolling("Time by op type", el("table", { class: "bars" }, el("thead", {}, el("tr", {}, ["type", "", "fp32", "best"].map((h, i) => el("th", { scope: "col", class: i > 1 ? "num" : null }, h)))),
			el("tbody", {}, all.map((t) => el("tr", {}, el("th", { scope: "row" }, t.op), el("td", { style: "width:55%" }, bar(t.before, "--fp32", "fp32"), bar(t.after, "--int8", "best")),
				...["before", "after"].map((side) => el("td", { class: "num" }, t[side] ? `${milliseconds(t[side].ms)} (${t[side].count})` : "–"))))))));
}
