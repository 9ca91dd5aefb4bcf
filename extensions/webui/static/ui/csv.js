// Rows as a file of comma-separated values.

/** A spreadsheet would read a cell that starts with one of these as a formula. */
const formula = /^[=+\-@\t\r]/;

/** @param {[name: string, valueOf: (row: object) => unknown][]} columns @param {object[]} rows */
export function csvOf(columns, rows) {
  const lines = [
    columns.map(([name]) => name),
    ...rows.map((row) => columns.map(([, valueOf]) => valueOf(row))),
  ];
  return lines.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('');
}

function cellOf(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = formula.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lets the browser save a string as a file. */
export function saveText(name, text, type = 'text/csv') {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then, the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
