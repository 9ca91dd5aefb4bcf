import { paintState, printable } from '../terminal/paint.ts';
import type { RunDetails } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { between, shortTime } from '../terminal/times.ts';

type LogLine = RunDetails['log'][number];

/** A run as a terminal shows it: what became of it, its attempts and steps, its log, its output. */
export function showRun(session: Session, run: RunDetails): string {
  const { paint } = session;
  const parts = [
    session.fields([
      ['id', run.id],
      ['task', run.task_id],
      ['state', run.skip_reason === null ? run.state : `${run.state}: ${run.skip_reason}`],
      ['trigger', run.trigger],
      ['due', shortTime(run.scheduled_for)],
      ['queued', shortTime(run.queued_at)],
      ['started', shortTime(run.started_at)],
      ['finished', shortTime(run.finished_at)],
      ['took', between(run.started_at, run.finished_at)],
      ['attempt', run.attempt],
      ['retry of', run.retry_of],
      ['error', run.error],
    ]),
  ];
  if (run.steps.length > 0) parts.push(stepsOf(session, run));
  if (run.log.length > 0) parts.push(run.log.map((line) => logLine(session, line)).join('\n'));
  if (run.output !== null) {
    parts.push(`${paint.faint('output')}\n${printable(JSON.stringify(run.output, null, 2))}`);
  }
  return parts.join('\n\n');
}

function stepsOf(session: Session, { steps }: RunDetails): string {
  const { paint } = session;
  return session.table(
    [
      { title: 'STEP', most: 40 },
      { title: 'STATUS', paint: (text, status) => paintState(paint, status, text) },
      { title: 'TOOK', align: 'right' },
      { title: 'ATTEMPT', align: 'right' },
      { title: 'ERROR', most: 80 },
    ],
    steps.map(({ step, status, started_at, finished_at, attempt, error }) => [
      step,
      status,
      between(started_at, finished_at),
      attempt,
      error,
    ]),
    'no steps',
  );
}

/** A line that a step of a run has logged. */
export function logLine({ paint }: Session, { at, level, step, message }: LogLine): string {
  const by = { error: paint.bad, warn: paint.warning }[level] ?? ((text: string) => text);
  return `${paint.faint(shortTime(at))} ${by(level.padEnd(5))} ${paint.faint(printable(step))} ${printable(message)}`;
}
