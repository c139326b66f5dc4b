"use strict";
// Sorts and searches tables, and shows their first rows until asked for the rest. Without it, every row is shown.

const valueOf = (row, column) => {
  const cell = row.cells[column];
  const number = Number(cell.dataset.k ?? cell.textContent.replaceAll(",", "") ?? NaN);
  return cell.textContent && !Number.isNaN(number) ? number : cell.textContent.toLowerCase();
};

const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === typeof b ? a.localeCompare(b, "en", { numeric: true })
    : typeof a === "number" ? -1 : 1;

const element = (name, text, attributes = {}) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(text);
  return made;
};

const equip = (box) => {
  const table = box.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const shown = Number(box.dataset.shown);
  const tools = element("div", "", { className: "tools" });
  const more = element("button", "", { type: "button" });
  const found = element("span", "", { className: "found" });
  found.setAttribute("role", "status");
  let order = rows, words = "", all = false;

  const draw = () => {
    const fitting = order.filter((row) => !words || row.textContent.toLowerCase().includes(words));
    const visible = all ? fitting : fitting.slice(0, shown);
    const kept = new Set(visible);
    body.replaceChildren(...order);
    for (const row of order) row.hidden = !kept.has(row);
    more.hidden = visible.length === fitting.length;
    more.textContent = `Show all ${fitting.length.toLocaleString("en")} rows`;
    found.textContent = words ? `${fitting.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
  };

  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = element("button", heading.textContent, { type: "button" });
    button.addEventListener("click", () => {
      const numeric = heading.classList.contains("n");
      const before = heading.getAttribute("aria-sort");
      const direction = before ? (before === "ascending" ? "descending" : "ascending")
        : numeric ? "descending" : "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", direction);
      const keys = new Map(rows.map((row) => [row, valueOf(row, column)]));
      const sign = direction === "ascending" ? 1 : -1;
      order = [...rows].sort((a, b) => sign * compare(keys.get(a), keys.get(b)));
      draw();
    });
    heading.replaceChildren(button);
  });

  if ("filtered" in box.dataset) {
    const input = element("input", "", { type: "search", placeholder: "Search these rows" });
    input.setAttribute("aria-label", `Search: ${table.caption.textContent}`);
    input.addEventListener("input", () => { words = input.value.trim().toLowerCase(); draw(); });
    tools.append(input, found);
  }
  more.addEventListener("click", () => { all = true; draw(); });
  box.prepend(tools);
  box.append(more);
  draw();
};

document.querySelectorAll("[data-sortable]").forEach(equip);

const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
