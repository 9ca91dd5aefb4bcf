import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeMachine, load } from './machine.ts';
import { formatOutcome, sumUp, tableHead, type Outcome } from './report.ts';
import { works, type Amounts, type Figures, type Work } from './works.ts';

const usage = `npm run bench -- [--work a,b] [--n 20000] [--due 1000] [--idle 200] [--events 1000000] [--keyed 10000] [--uses 1000000] [--seconds 4] [--listed 200000] [--store folder] [--clients 1000] [--repeats 3] [--out file.json]
works: ${Object.keys(works).join(', ')}; drain, end-to-end and lateness stand for both of theirs
`;

/** What is to be done. */
interface Order {
  readonly chosen: readonly (readonly [name: string, work: Work])[];
  readonly amounts: Amounts;
  readonly repeats: number;
  readonly out: string | undefined;
}

/** @throws Error saying what is wrong with the arguments */
function readOrder(): Order {
  const { values } = parseArgs({
    options: {
      work: { type: 'string', default: Object.keys(works).join(',') },
      n: { type: 'string', default: '20000' },
      due: { type: 'string', default: '1000' },
      idle: { type: 'string', default: '200' },
      events: { type: 'string', default: '1000000' },
      keyed: { type: 'string', default: '10000' },
      uses: { type: 'string', default: '1000000' },
      seconds: { type: 'string', default: '4' },
      listed: { type: 'string', default: '200000' },
      store: { type: 'string' },
      clients: { type: 'string', default: '1000' },
      repeats: { type: 'string', default: '3' },
      out: { type: 'string' },
    },
  });
  const count = (name: Exclude<keyof Amounts, 'store'> | 'repeats'): number => {
    const value = Number(values[name]);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new Error(`--${name} needs a whole number from 1`);
  };
  return {
    chosen: values.work.split(',').flatMap(chosenBy),
    amounts: {
      n: count('n'),
      due: count('due'),
      idle: count('idle'),
      events: count('events'),
      keyed: count('keyed'),
      uses: count('uses'),
      seconds: count('seconds'),
      listed: count('listed'),
      store: values.store,
      clients: count('clients'),
    },
    repeats: count('repeats'),
    out: values.out,
  };
}

function chosenBy(wanted: string): (readonly [string, Work])[] {
  const found = Object.entries(works).filter(
    ([name]) => name === wanted || name.replace(/-(10|64|instant|spread)$/, '') === wanted,
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
    // Written each time: what was measured stands, whatever becomes of the rest.
    if (out !== undefined) writeFileSync(out, resultOf(outcomes));
  }
  const missed = outcomes.flatMap(({ verdicts }) => verdicts).filter(({ reached }) => !reached);
  const seconds = Math.round((Date.now() - since.getTime()) / 1000);
  console.log(`\n${missed.length} targets missed; load ${load()}; ${seconds} s`);

  function resultOf(all: readonly Outcome[]): string {
    const result = {
      date: since.toISOString(),
      ...short,
      packages,
      load: { before: loadBefore, after: load() },
      options: { ...amounts, repeats },
      rows: all.flatMap(({ row }) => (row === null ? [] : [row])),
      figures: all.flatMap(({ lines }) => lines),
      targets: all.flatMap(({ verdicts }) => verdicts),
    };
    return `${JSON.stringify(result, null, 2)}\n`;
  }
}

let order: Order | undefined;
try {
  order = readOrder();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  process.exitCode = 2;
}
if (order !== undefined) await run(order);
