import type { Machine } from './machine.ts';
import { median, rounded } from './statistics.ts';
import type { Figures, Target, Benchmark } from './benchmark.ts';

/** A row in the format of the peers' benchmark. */
interface Row {
  readonly work: string;
  readonly peer: string;
  readonly version: string;
  readonly durability: string;
  readonly n: number;
  readonly unit: 'jobs/s' | 'ms';
  /** Over the repeats: of the rate, or of the p99 if the unit is ms. */
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly p50?: number;
  readonly p99?: number;
  readonly worst?: number;
  readonly settings: string;
  readonly node: string;
}

/** A figure over the repeats. */
interface Line {
  readonly work: string;
  readonly figure: string;
  readonly n: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** A target and whether it was reached. */
interface Verdict extends Target {
  readonly work: string;
  readonly measured: number;
  readonly reached: boolean;
}

/** The repeats of one work. */
export interface Outcome {
  readonly lines: readonly Line[];
  readonly verdicts: readonly Verdict[];
  /** null if the peers do not measure it. */
  readonly row: Row | null;
}

/** Sums up the repeats of one work. */
export function sumUp(
  name: string,
  work: Benchmark,
  n: number,
  repeats: readonly Figures[],
  machine: Machine,
): Outcome {
  const lines = Object.keys(repeats[0] ?? {}).map((figure): Line => {
    const values = repeats.map((figures) => figures[figure] ?? Number.NaN);
    const [min, max] = [Math.min(...values), Math.max(...values)].map(rounded);
    return { work: name, figure, n, median: rounded(median(values)), min: min ?? 0, max: max ?? 0 };
  });
  const of = (figure: string): Line | undefined => lines.find((line) => line.figure === figure);
  const verdicts = work.targets.map((target): Verdict => {
    const measured = of(target.figure)?.median ?? Number.NaN;
    return { work: name, ...target, measured, reached: isReached(target, measured) };
  });
  return { lines, verdicts, row: rowOf(name, work, n, of, machine) };
}

function isReached({ is, value }: Target, measured: number): boolean {
  if (is === 'at least') return measured >= value;
  return is === 'more than' ? measured > value : measured < value;
}

function rowOf(
  name: string,
  { peers }: Benchmark,
  n: number,
  of: (figure: string) => Line | undefined,
  { version, node }: Machine,
): Row | null {
  const headline = peers === undefined ? undefined : of(peers.headline);
  if (peers === undefined || headline === undefined) return null;
  const [p50, p99, worst] = [of('p50 ms'), of('p99 ms'), of('worst ms')];
  return {
    work: name,
    peer: 'ours-embedded',
    version: `task-scheduling-service ${version}`,
    durability: 'power cut',
    n,
    unit: peers.unit,
    median: headline.median,
    min: headline.min,
    max: headline.max,
    ...(p50 && p99 && worst ? { p50: p50.median, p99: p99.median, worst: worst.max } : {}),
    settings: 'all roles in one process, embedded store, defaults; pipeline of one echo step',
    node: node.slice(1),
  };
}

/** The rows of one outcome, under {@link tableHead}. */
export function formatOutcome({ lines, verdicts }: Outcome): string {
  return lines
    .flatMap((line) => {
      const { work, figure, n } = line;
      const own = verdicts.filter((verdict) => verdict.figure === figure);
      const start = [
        work.padEnd(17),
        figure.padEnd(21),
        number(n).padStart(9),
        number(line.median).padStart(10),
        `${number(line.min)}..${number(line.max)}`.padStart(19),
      ].join('  ');
      return [start, ...own.map((verdict) => `${' '.repeat(19)}${formatVerdict(verdict)}`)];
    })
    .join('\n');
}

/** The head of the table. */
export const tableHead = [
  'work'.padEnd(17),
  'figure'.padEnd(21),
  'n'.padStart(9),
  'median'.padStart(10),
  'min..max'.padStart(19),
].join('  ');

function formatVerdict({ is, value, because, reached }: Verdict): string {
  return `${reached ? 'reached' : 'MISSED '}  ${is} ${number(value)} (${because})`;
}

function number(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}
