import { exitCodes, type ExitCode } from '../calling/faults.ts';
import { liveChanges, type LiveChange } from '../calling/live.ts';
import { paintState, printable } from '../terminal/paint.ts';
import type { RunDetails } from '../calling/records.ts';
import { logLine } from './run-screen.ts';
import type { Session } from '../calling/session.ts';
import { between, shortTime } from '../terminal/times.ts';
import { part } from '../terminal/values.ts';

/** States in which nothing more happens to a run. */
export const ended: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'skipped']);

/**
 * Tells what a run does until it ends: its states, steps and log as they come.
 * @returns what the process ends with: 0 when it succeeded
 */
export async function followRun(session: Session, id: string): Promise<ExitCode> {
  const { client } = session;
  const read = (): Promise<RunDetails> => client.ask((api) => api.runs.get(id));
  const teller = new RunTeller(session);
  let run = await read();
  teller.tell(run);
  if (ended.has(run.state)) return exitCodeOf(run);
  for await (const change of liveChanges(session, `/tasks/${part(run.task_id)}/live`)) {
    if (change !== null && change.run.id !== run.id) continue;
    run = await read();
    teller.tell(run);
    if (ended.has(run.state)) break;
    // The view may be a moment behind what the stream tells.
    if (change !== null && ended.has(change.run.state)) {
      run = { ...run, ...change.run };
      teller.tell(run);
      break;
    }
  }
  return exitCodeOf(run);
}

function exitCodeOf({ state }: RunDetails): ExitCode {
  return state === 'failed' || state === 'canceled' ? exitCodes.failure : exitCodes.ok;
}

/** Tells of each thing once. */
class RunTeller {
  readonly #session: Session;
  #state = '';
  #lines = 0;
  #steps = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  tell(run: RunDetails): void {
    const session = this.#session;
    const { paint } = session;
    const lines = run.log.slice(this.#lines);
    const steps = run.steps.slice(this.#steps);
    this.#lines = run.log.length;
    this.#steps = run.steps.length;
    const state = `${run.state} ${run.attempt}`;
    const changed = state !== this.#state;
    this.#state = state;
    if (session.json) {
      for (const line of lines) session.jsonLine({ run_id: run.id, log: line });
      for (const { step, status, error } of steps) {
        session.jsonLine({ run_id: run.id, step: { step, status, error } });
      }
      if (changed) session.jsonLine({ run_id: run.id, state: run.state, error: run.error });
      return;
    }
    for (const line of lines) session.line(logLine(session, line));
    for (const { step, status, error, started_at, finished_at } of steps) {
      const took = between(started_at, finished_at);
      const said = `step ${step} ${status} ${took === '' ? '' : `after ${took}`}`.trim();
      session.line(
        paintState(paint, status, printable(error === null ? said : `${said}: ${error}`)),
      );
    }
    if (changed) {
      const attempt = run.attempt > 1 ? `, attempt ${run.attempt}` : '';
      const error = run.error === null ? '' : `: ${printable(run.error)}`;
      session.line(`${paintState(paint, run.state)}${attempt}${error}`);
    }
  }
}

/** Tells of every change of runs, a line each, until it is interrupted. */
export async function followRuns(
  session: Session,
  query: { readonly task_id: string | undefined; readonly state: string | undefined },
): Promise<void> {
  for await (const change of liveChanges(session, '/runs/live', query)) {
    if (change === null) continue;
    if (session.json) session.jsonLine(change);
    else session.line(changeLine(session, change));
  }
}

function changeLine({ paint }: Session, { at, run, step }: LiveChange): string {
  const what = step === null ? '' : ` step ${step.step} ${step.status}`;
  const error = step === null && run.error !== null ? `: ${run.error}` : '';
  const state = paintState(paint, run.state, run.state.padEnd(9));
  const rest = printable(`${what}${error}`.trim());
  return `${paint.faint(shortTime(at))} ${state} ${run.id} ${paint.faint(`of ${run.task_id}`)} ${rest}`.trim();
}
