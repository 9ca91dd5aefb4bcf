import type { RunDetails } from '../calling/records.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { statePainter } from '../terminal/paint.ts';
import { between, shortTime } from '../terminal/units.ts';

type End = RunDetails['steps'][number];
type Planned = NonNullable<RunDetails['plan']>[number];
/** A suspended step of a run. */
export type Wait = RunDetails['waits'][number];

/** A step in its present state, or as it ended in an earlier attempt. */
interface StepRow {
  readonly step: string;
  readonly state: string;
  readonly uses?: string | null;
  readonly needs?: readonly string[];
  readonly end?: End | undefined;
  readonly wait?: Wait | undefined;
}

/**
 * The steps of a run as a table: all steps of its pipeline, or only the ended ones if the pipeline is unknown. Some
 * columns are left out if they would be empty.
 * @returns an empty string if there are none
 */
export function stepsTable(session: Session, { plan, steps, waits }: RunDetails): string {
  const planned = new Set(plan?.map(({ step }) => step));
  const rows = [
    ...(plan ?? []).flatMap((each) => rowsOf(each, steps, waits)),
    ...steps.filter(({ step }) => !planned.has(step)).map(endRow),
  ];
  if (rows.length === 0) return '';
  const optional = (isShown: boolean, column: RecordColumn<StepRow>) => (isShown ? [column] : []);
  const isWaiting = rows.some(({ wait }) => wait !== undefined);
  return session.table<StepRow>(
    [
      { title: 'STEP', maxWidth: 40, cell: ({ step }) => step },
      { title: 'STATE', cell: ({ state }) => state, paint: statePainter(session.paint) },
      ...optional(
        rows.some(({ uses }) => uses),
        { title: 'USES', maxWidth: 40, cell: ({ uses }) => uses ?? null },
      ),
      ...optional(!isSequence(plan), {
        title: 'NEEDS',
        maxWidth: 40,
        cell: ({ needs = [] }) => needs.join(' '),
      }),
      {
        title: 'TOOK',
        align: 'right',
        cell: ({ end }) => (end === undefined ? '' : between(end.started_at, end.finished_at)),
      },
      { title: 'ATTEMPT', align: 'right', cell: ({ end }) => end?.attempt ?? null },
      ...optional(isWaiting, {
        title: 'WAITS FOR',
        cell: ({ wait }) => (wait === undefined ? '' : awaited(wait)),
      }),
      ...optional(isWaiting, { title: 'SINCE', cell: ({ wait }) => shortTime(wait?.since) }),
      ...optional(isWaiting, { title: 'UNTIL', cell: ({ wait }) => shortTime(wait?.until) }),
      ...optional(
        rows.some(({ end }) => end !== undefined && end.error !== null),
        { title: 'ERROR', maxWidth: 80, cell: ({ end }) => end?.error ?? null },
      ),
    ],
    rows,
    'no steps',
  );
}

const endRow = (end: End): StepRow => ({ step: end.step, state: end.status, end });

/** How the step ended in earlier attempts, then its present state. */
function rowsOf(
  { step, state, uses, needs }: Planned,
  steps: readonly End[],
  waits: readonly Wait[],
): readonly StepRow[] {
  const ends = steps.filter((end) => end.step === step);
  const hasEnded = state !== 'pending' && state !== 'running' && state !== 'waiting';
  const end = hasEnded ? ends.at(-1) : undefined;
  const earlier = ends.filter((each) => each !== end).map((each) => ({ ...endRow(each), uses }));
  const wait = openWaits({ waits }).find((each) => each.step === step);
  return [...earlier, { step, state, uses, needs, end, wait }];
}

/** Whether each step depends on the one before it, so that the order of the table says it all. */
function isSequence(plan: RunDetails['plan']): boolean {
  const outer = (plan ?? []).filter(({ step, group }) => group === null && !step.endsWith(']'));
  return outer.every(({ needs }, place) => needs.join() === (outer[place - 1]?.step ?? ''));
}

/** The waits of a run that have not ended. */
export const openWaits = ({ waits }: { readonly waits: readonly Wait[] }): readonly Wait[] =>
  waits.filter(({ resumed_by }) => resumed_by === null);

/** What a step waits for, with the id needed to answer it. */
export function awaited(wait: Wait): string {
  const { kind, id, topic, message, run_id, tool, reason, progress } = wait;
  switch (kind) {
    case 'timer':
      return 'a time';
    case 'event':
      return `an event on ${topic ?? ''}${wait.if ? ` if ${wait.if}` : ''}`;
    case 'approval':
      return `approval ${id}: ${message ?? ''}`;
    case 'callback':
      return 'a callback';
    case 'run':
      return `run ${run_id ?? ''}`;
    case 'job': {
      const done = progress === undefined ? '' : ` (${Math.floor(progress * 100)} %)`;
      return `${tool ?? ''}: ${reason ?? 'a worker'}${done}`;
    }
  }
}
