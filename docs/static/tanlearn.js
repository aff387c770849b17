// What shows a picture only is named for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("details > summary:not([aria-label])")) {
    const link = toggle.closest("li")?.querySelector("a");
    if (!toggle.textContent.trim() && link) toggle.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
});

// Wide pictures scroll on narrow pages, so that their text stays readable.
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll(".bd-article img")) {
    const mark = () => image.naturalWidth > 800 && image.parentElement.classList.add("wide-picture");
    if (image.complete) mark();
    else image.addEventListener("load", mark);
  }
});

// Tables of benchmark pages are sorted by a click on a header, and each has a link to its values as CSV.
const valueOf = (cell) => Number.parseFloat(cell.textContent.trim().replaceAll(",", "").replace(/^\+/, ""));
const isTotal = (row) => row.cells[0].textContent.trim() === "mean"; // stays at the end

const sortRows = (table, column, descending) => {
  const body = table.tBodies[0];
  const rows = [...body.rows].filter((row) => !isTotal(row));
  const numeric = rows.every((row) => !row.cells[column]?.textContent.trim() || !Number.isNaN(valueOf(row.cells[column])));
  const key = (row) => (numeric ? valueOf(row.cells[column]) : (row.cells[column]?.textContent.trim() ?? ""));
  const isMissing = (value) => value === "" || Number.isNaN(value);
  rows.sort((first, second) => {
    const [a, b] = [key(first), key(second)];
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b); // at the end in both directions
    return (numeric ? a - b : a.localeCompare(b)) * (descending ? -1 : 1);
  });
  body.append(...rows, ...[...body.rows].filter(isTotal));
};

const csvOf = (table) =>
  [...table.rows]
    .map((row) => [...row.cells].map((cell) => `"${cell.textContent.trim().replaceAll('"', '""')}"`).join(","))
    .join("\r\n");

document.addEventListener("DOMContentLoaded", () => {
  if (!location.pathname.includes("/benchmarks/")) return;
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (!table.tHead || !table.tBodies.length || table.tBodies[0].rows.length < 3) continue;
    const headers = [...table.tHead.rows[0].cells];
    for (const [column, header] of headers.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort-rows";
      button.title = "Sort the rows by this column";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const descending = header.getAttribute("aria-sort") === "ascending";
        for (const other of headers) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sortRows(table, column, descending);
      });
    }
    const link = document.createElement("a");
    link.className = "table-as-csv";
    link.textContent = "Download this table as CSV";
    link.download = `${location.pathname.split("/").pop().replace(/\.html$/, "")}.csv`;
    link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
    (table.closest(".pst-scrollable-table-container") ?? table).after(link);
  }
});
