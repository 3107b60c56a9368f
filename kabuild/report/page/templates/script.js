"use strict";
// The page is whole without this: it sorts tables, filters tasks and colours diffs.
const number = (cell) => {
  const found = parseFloat(cell.dataset.value ?? cell.textContent);
  return Number.isNaN(found) ? null : found;
};
const compare = (a, b) => {
  const [x, y] = [number(a), number(b)];
  if (x !== null && y !== null) return x - y;
  if (x !== null || y !== null) return x === null ? -1 : 1;
  return a.textContent.localeCompare(b.textContent);
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (up ? 1 : -1) * compare(a.cells[column], b.cells[column]));
      table.tBodies[0].append(...rows);
    });
  });
}
// A filter shows what has its word in the data of the same name; the address keeps what is chosen.
const filters = [...document.querySelectorAll("[data-filter]")];
const shown = (item) => filters.every(({ dataset: { filter }, type, value }) => {
  const wanted = value.trim().toLowerCase();
  const found = item.dataset[filter]?.toLowerCase();
  if (!wanted || !found) return true;
  return type === "search" ? found.includes(wanted) : found.split(" ").includes(wanted);
});
const apply = () => {
  for (const item of document.querySelectorAll("[data-task]")) item.hidden = !shown(item);
};
const chosen = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
for (const filter of filters) {
  filter.value = chosen.get(filter.dataset.filter) ?? "";
  if (filter.selectedIndex === -1) filter.value = "";
  filter.addEventListener("input", () => {
    const set = filters.filter((item) => item.value).map((item) => [item.dataset.filter, item.value]);
    history.replaceState(null, "", `#${new URLSearchParams(set)}`);
    apply();
  });
}
apply();
const kinds = { "+": "add", "-": "cut", "@": "at" };
const colour = (pre) => {
  if (pre.dataset.coloured) return;
  pre.dataset.coloured = "yes";
  const lines = pre.textContent.split("\n").map((line) => {
    const part = document.createElement("span");
    part.className = kinds[line[0]] ?? "";
    part.textContent = line + "\n";
    return part;
  });
  pre.replaceChildren(...lines);
};
document.addEventListener("toggle", (event) => {
  if (event.target.open) event.target.querySelectorAll(":scope > pre.diff").forEach(colour);
}, true);
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target?.matches("details") ? target : target?.querySelector("details");
  if (!details) return;
  details.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
