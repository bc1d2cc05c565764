// A table that is a list on a telephone: each row is a block, and each cell stands beside the head
// of its column. The look is the style sheet's (`.stacks`); this gives each cell its label.

/** For `use:`; a table whose first row is its head. */
export function stacked(table: HTMLTableElement): { destroy: () => void } {
  const label = () => {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent?.trim() ?? "");
    for (const row of table.tBodies[0]?.rows ?? []) {
      [...row.cells].forEach((cell, at) => {
        const head = heads[at] ?? "";
        if (cell.dataset.label !== head) cell.dataset.label = head;
      });
    }
  };
  label();
  table.classList.add("stacks");
  // Rows that come later. What changes in a cell is no reason to look.
  const watcher = new MutationObserver(label);
  if (table.tBodies[0]) watcher.observe(table.tBodies[0], { childList: true });
  if (table.tHead?.rows[0]) watcher.observe(table.tHead.rows[0], { childList: true });
  return { destroy: () => watcher.disconnect() };
}
