// The page is whole without this script. Sort a table by the column whose heading is clicked: numbers by value, missing values last.
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
	const th = button.parentNode, body = th.closest("table").tBodies[0], up = th.getAttribute("aria-sort") !== "ascending";
	const key = row => { const c = row.cells[th.cellIndex], d = c.querySelector("data"); return d ? d.value : c.textContent; };
	const missing = s => s === "" || /^-?nan$|^NA$|^-$/i.test(s);
	const compare = (a, b) => missing(a) || missing(b) ? missing(a) - missing(b) : (up ? 1 : -1) * (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
	for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
	th.setAttribute("aria-sort", up ? "ascending" : "descending");
	body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
});
// On maps, show the class alone whose name in the legend is under the pointer.
for (const group of document.querySelectorAll(".maps")) for (const item of group.querySelectorAll(".legend li")) {
	const show = on => {
		group.classList.toggle("one-class", on);
		for (const g of group.querySelectorAll(`g[data-k="${item.dataset.k}"]`)) g.classList.toggle("shown", on);
	};
	item.addEventListener("pointerenter", () => show(true));
	item.addEventListener("pointerleave", () => show(false));
}
// A page on paper shows everything.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
