import { table } from '../../../app/cli/terminal/table.ts';
import type { Kind } from './crash-kinds.ts';
import type { CrashPoint } from './crash-process.ts';
import type { Outcome } from './crash-scenario.ts';

/** A crash to perform: at an append of a kind of task. */
export interface PlannedCrash {
  readonly kind: Kind;
  readonly point: CrashPoint;
  /** The event types of the append when no process died. */
  readonly append: string;
  /** The outcome of the kind when no process dies. */
  readonly quiet: Outcome;
}

/** A crash that was performed. */
export interface MadeCrash extends PlannedCrash {
  readonly outcome: Outcome;
}

/**
 * A crash before every append of every kind, and after every append that the log accepted.
 *
 * @param quiet the outcome of each kind when no process died
 */
export function everyCrash(quiet: ReadonlyMap<Kind, Outcome>): PlannedCrash[] {
  return [...quiet].flatMap(([kind, outcome]) =>
    outcome.appends.flatMap((append, index) => {
      const number = index + 1;
      const whens = outcome.written.has(number)
        ? (['before', 'after'] as const)
        : (['before'] as const);
      return whens.map((when) => ({
        kind,
        append,
        quiet: outcome,
        point: { append: number, when },
      }));
    }),
  );
}

/**
 * The smallest selection that has a crash before and after each combination of event types. It is spread over the kinds
 * and always the same.
 */
export function someOf(all: readonly PlannedCrash[]): PlannedCrash[] {
  const met = new Map<string, PlannedCrash>();
  const used = new Map<Kind, number>();
  // Appends that few kinds have come first, because they leave the least choice.
  const kindsOf = byName(all);
  const rarest = [...kindsOf].sort(([, a], [, b]) => a.length - b.length);
  for (const [name, crashes] of rarest) {
    const [first] = crashes.toSorted(
      (a, b) =>
        (used.get(a.kind) ?? 0) - (used.get(b.kind) ?? 0) || b.point.append - a.point.append,
    );
    if (first === undefined) continue;
    met.set(name, first);
    used.set(first.kind, (used.get(first.kind) ?? 0) + 1);
  }
  return [...met.values()];
}

const nameOf = ({ append, point: { when } }: PlannedCrash): string => `${when} ${append}`;

function byName<T extends PlannedCrash>(crashes: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const each of crashes) {
    groups.set(nameOf(each), [...(groups.get(nameOf(each)) ?? []), each]);
  }
  return groups;
}

/** The matrix as text. Each line is a point of death with the outcomes of all crashes there. */
export function matrixTable(crashes: readonly MadeCrash[]): string {
  const columns = [
    { title: 'dies' },
    ...['crashes', 'kinds', 'succeeded', 'skipped', 'canceled', 'taken over', 'made up'].map(
      (title) => ({ title, align: 'right' as const }),
    ),
    { title: 'steps again', align: 'right' as const },
    { title: 'faults', align: 'right' as const },
  ];
  const groups = [...byName(crashes)].sort(([a], [b]) => placeOf(a) - placeOf(b));
  return table(
    columns,
    [...groups, ['in all', crashes] as const].map(([name, made]) => rowOf(name, made)),
  );
}

function rowOf(name: string, made: readonly MadeCrash[]): (string | number)[] {
  const sum = (count: (outcome: Outcome) => number | undefined): number =>
    made.reduce((total, { outcome }) => total + (count(outcome) ?? 0), 0);
  return [
    name.replaceAll('+', ', '),
    made.length,
    new Set(made.map(({ kind }) => kind)).size,
    sum(({ ends }) => ends['succeeded']),
    sum(({ ends }) => ends['skipped']),
    sum(({ ends }) => ends['canceled']),
    sum(({ takenOver }) => takenOver),
    sum(({ madeUp }) => madeUp),
    // Without the calls that also repeat when no process dies: retries of failed steps.
    made.reduce((total, { outcome, quiet }) => total + outcome.calledAgain - quiet.calledAgain, 0),
    sum(({ faults }) => faults.length),
  ];
}

/** The usual order of events from the due time to the end of the run. */
const course = [
  'Fired',
  'KeyUsed',
  'KeyHeld',
  'KeyWaited',
  'PayloadStored',
  'RunRequested',
  'RunSkipped',
  'RunCancelRequested',
  'RunStarted',
  'RunStepCompleted',
  'RunAttemptFailed',
  'RunCanceled',
  'RunSucceeded',
  'KeyReleased',
];

function placeOf(name: string): number {
  const [when = '', append = ''] = name.split(' ');
  const last = append.split('+').at(-1) ?? '';
  return course.indexOf(last) * 10 + append.split('+').length * 2 + (when === 'after' ? 1 : 0);
}
