// Makes a table of NDJSON, such as `svc export --format ndjson` writes it: groups rows, and says something of each group.
//
//   svc export --format ndjson --of runs | node examples/analysis/table.mjs \
//     --each 'row.steps' --by 'week=week(row.scheduled_for)' --by 'step=item.step' \
//     --show 'runs=count()' --show 'p95 ms=p95(ms(item.started_at, item.finished_at))'
//
// --where  which rows count; an expression over `row`
// --each   what of a row is counted, where that is several things: they are called `item`
// --by     columns that make a group, `title=expression` over `row` and `item`; at most several
// --show   columns that say something of it: `count()`, `sum(…)`, `share(…)`, `p50(…)`, `p95(…)`, `first(…)`, `last(…)`
// --sort   by which column, descending; else by the groups
// --top    at most so many lines
//
// Expressions are JavaScript, and are run as such: write them yourself.
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    where: { type: 'string', default: 'true' },
    each: { type: 'string', default: '[row]' },
    by: { type: 'string', multiple: true, default: [] },
    show: { type: 'string', multiple: true, default: ['count=count()'] },
    sort: { type: 'string' },
    top: { type: 'string', default: 'Infinity' },
  },
});

/** What expressions may use: the row's own, and of a group what is folded over its rows. */
const ofRow = {
  day: (at) => at?.slice(0, 10) ?? '',
  hour: (at) => at?.slice(0, 13) ?? '',
  /** `2026-W47`, of ISO 8601. */
  week(at) {
    if (!at) return '';
    const date = new Date(`${at.slice(0, 10)}T00:00Z`);
    date.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7));
    const first = Date.UTC(date.getUTCFullYear(), 0, 1);
    const number = Math.ceil(((date.getTime() - first) / 86_400_000 + 1) / 7);
    return `${date.getUTCFullYear()}-W${String(number).padStart(2, '0')}`;
  },
  ms: (from, to) => (from && to ? Date.parse(to) - Date.parse(from) : null),
};
/** What is there to be said: of the events of a stream only some have a reason. */
const said = (each) => each !== null && each !== undefined;
const rank = (of, share) => {
  const numbers = of.filter(said).sort((a, b) => a - b);
  return numbers[Math.max(0, Math.ceil(share * numbers.length) - 1)] ?? null;
};
const folds = {
  count: (of) => of.length,
  sum: (of) => of.reduce((total, each) => total + (each ?? 0), 0),
  share: (of) => `${((100 * of.filter(Boolean).length) / of.length).toFixed(1)} %`,
  p50: (of) => rank(of, 0.5),
  p95: (of) => rank(of, 0.95),
  first: (of) => of.find(said),
  last: (of) => of.findLast(said),
};

const names = ['row', 'item', ...Object.keys(ofRow)];
/** An expression over a row and an item of it. */
function expression(text) {
  // The caller's own words, as those of `jq` would be.
  // oxlint-disable-next-line typescript/no-implied-eval
  const compiled = new Function(...names, `return (${text});`);
  return (row, item) => compiled(row, item, ...Object.values(ofRow));
}
/** `title=expression`, the title up to the first `=`. */
const parts = (text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)];

const where = expression(values.where);
const each = expression(values.each);
const by = values.by.map(parts).map(([title, text]) => ({ title, of: expression(text) }));
const show = values.show.map(parts).map(([title, text]) => {
  const [, name = '', inner = ''] = /^(\w+)\((.*)\)$/.exec(text) ?? [];
  if (!(name in folds))
    throw new Error(`--show ${text}: it takes ${Object.keys(folds).join(', ')}`);
  return { title, fold: folds[name], of: expression(inner === '' ? 'item' : inner) };
});

const groups = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const row = JSON.parse(line);
  if (!where(row, row)) continue;
  for (const item of each(row, row) ?? []) {
    const key = by.map(({ of }) => of(row, item));
    const id = JSON.stringify(key);
    const group = groups.get(id) ?? { key, found: show.map(() => []) };
    groups.set(id, group);
    for (const [index, { of }] of show.entries()) group.found[index].push(of(row, item));
  }
}

const titles = [...by, ...show].map(({ title }) => title);
const lines = [...groups.values()].map(({ key, found }) => [
  ...key,
  ...show.map(({ fold }, index) => fold(found[index])),
]);
/** A cell is one line: an error may have several. */
const text = (cell) => String(cell ?? '').replaceAll(/\s+/g, ' ');
const sorted = titles.indexOf(values.sort);
/** Shares and numbers by their size, all else by its text; nothing comes last. */
const descending = (a, b) => {
  const [one, other] = [text(a), text(b)];
  if (one === '' || other === '') return Number(one === '') - Number(other === '');
  const isNumbers = [one, other].every((each) => /^-?[\d.]+(e[+-]\d+)?( %)?$/.test(each));
  if (isNumbers) return parseFloat(other) - parseFloat(one);
  return one < other ? 1 : one > other ? -1 : 0;
};
if (sorted >= 0) lines.sort((a, b) => descending(a[sorted], b[sorted]));
else lines.sort((a, b) => (text(a.slice(0, by.length)) < text(b.slice(0, by.length)) ? -1 : 1));
const shown = lines.slice(0, Number(values.top)).map((cells) => cells.map(text));
const widths = titles.map((title, at) =>
  Math.max(...[titles, ...shown].map((cells) => cells[at].length), title.length),
);
const isNumber = titles.map((_, at) => shown.every((cells) => /^-?[\d.]*( %)?$/.test(cells[at])));
const pad = (cell, at) => (isNumber[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at]));
for (const cells of [titles, ...shown]) console.log(cells.map(pad).join('  ').trimEnd());
