import type { RunDetails } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { printable } from '../terminal/paint.ts';
import { between, shortTime } from '../terminal/units.ts';
import { stepsTable } from './run-steps.ts';

/** Formats a run with its steps, log and output. */
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
      ['params', paramsText(run)],
      ['event', run.event ? `${run.event.id} on ${run.event.topic}` : ''],
      ['retry of', run.retry_of],
      ['depth', run.depth === 0 ? null : run.depth],
      ['parent', run.parent_run_id],
      ['error', run.error],
    ]),
  ];
  const steps = stepsTable(session, run);
  if (steps !== '') parts.push(steps);
  if (run.log.length > 0) parts.push(run.log.map((line) => logLine(session, line)).join('\n'));
  if (run.output !== null) {
    parts.push(`${paint.faint('output')}\n${printable(JSON.stringify(run.output, null, 2))}`);
  }
  return parts.join('\n\n');
}

function paramsText({ params }: RunDetails): string {
  const isEmpty = Object.keys(params ?? {}).length === 0;
  return isEmpty ? '' : JSON.stringify(params);
}

/** Formats a line of a run's log. */
export function logLine(
  { paint }: Session,
  { at, level, step, message }: RunDetails['log'][number],
): string {
  const by = { error: paint.bad, warn: paint.warning }[level] ?? ((text: string) => text);
  return `${paint.faint(shortTime(at))} ${by(level.padEnd(5))} ${paint.faint(printable(step))} ${printable(message)}`;
}
