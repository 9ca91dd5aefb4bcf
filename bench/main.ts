import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeMachine, load } from './machine.ts';
import { formatOutcome, sumUp, tableHead, type Outcome } from './report.ts';
import type { Amounts, Figures, Benchmark } from './benchmark.ts';
import { benchmarks } from './benchmarks.ts';

/** Numbers that can be set, with their defaults. */
const defaults = {
  n: 20_000,
  due: 1_000,
  idle: 200,
  events: 1_000_000,
  keyed: 10_000,
  uses: 1_000_000,
  seconds: 4,
  listed: 200_000,
  clustered: 2_000,
  deciding: 5_000,
  clients: 1_000,
  repeats: 3,
} as const;
type Counts = Record<keyof typeof defaults, number>;

const flags = Object.entries(defaults).map(([name, value]) => `[--${name} ${value}]`);
const usage = `npm run bench -- [--work a,b] ${flags.join(' ')} [--store folder] [--out file.json]
works: ${Object.keys(benchmarks).join(', ')}; drain, end-to-end, lateness, cluster and decisions each stand for two works
`;

interface Order {
  readonly chosen: readonly (readonly [name: string, work: Benchmark])[];
  readonly amounts: Amounts;
  readonly repeats: number;
  readonly out: string | undefined;
}

/** @throws Error that says what is wrong with the arguments */
function readOrder(): Order {
  const string = { type: 'string' } as const;
  const numbers = Object.fromEntries(Object.keys(defaults).map((name) => [name, string]));
  const { values } = parseArgs({
    options: { ...numbers, work: string, store: string, out: string },
  });
  const given: Readonly<Record<string, string | undefined>> = values;
  const counts = Object.entries(defaults).map(([name, otherwise]) => {
    const value = Number(given[name] ?? otherwise);
    if (Number.isSafeInteger(value) && value > 0) return [name, value];
    throw new Error(`--${name} must be a whole number from 1`);
  });
  const { repeats, ...amounts } = Object.fromEntries(counts) as Counts;
  const { work = Object.keys(benchmarks).join(','), store, out } = values;
  return {
    chosen: work.split(',').flatMap(worksNamed),
    amounts: { ...amounts, store },
    repeats,
    out,
  };
}

function worksNamed(wanted: string): (readonly [string, Benchmark])[] {
  const found = Object.entries(benchmarks).filter(
    ([name]) =>
      name === wanted || name.replace(/-(10|64|instant|spread|servers|embedded)$/, '') === wanted,
  );
  if (found.length === 0) throw new Error(`there is no work ${wanted}`);
  return found;
}

async function run({ chosen, amounts, repeats, out }: Order): Promise<void> {
  const machine = describeMachine();
  const { packages, ...short } = machine;
  const since = new Date();
  const loadBefore = load();
  console.log(`${JSON.stringify(short)}\nload ${loadBefore}, ${repeats} repeats\n\n${tableHead}`);
  const outcomes: Outcome[] = [];
  for (const [name, work] of chosen) {
    const measured: Figures[] = [];
    for (let repeat = 0; repeat < repeats; repeat += 1) measured.push(await work.measure(amounts));
    const outcome = sumUp(name, work, work.count(amounts), measured, machine);
    outcomes.push(outcome);
    console.log(formatOutcome(outcome));
    if (out === undefined) continue;
    // Written after each work, so that an interruption loses nothing.
    const result = {
      date: since.toISOString(),
      ...short,
      packages,
      load: { before: loadBefore, after: load() },
      options: { ...amounts, repeats },
      rows: outcomes.flatMap(({ row }) => (row === null ? [] : [row])),
      figures: outcomes.flatMap(({ lines }) => lines),
      targets: outcomes.flatMap(({ verdicts }) => verdicts),
    };
    writeFileSync(out, `${JSON.stringify(result, null, 2)}\n`);
  }
  const missed = outcomes.flatMap(({ verdicts }) => verdicts).filter(({ reached }) => !reached);
  const seconds = Math.round((Date.now() - since.getTime()) / 1000);
  console.log(`\n${missed.length} targets missed; load ${load()}; ${seconds} s`);
}

let order: Order | undefined;
try {
  order = readOrder();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  process.exitCode = 2;
}
if (order !== undefined) await run(order);
