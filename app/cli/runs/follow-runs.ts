import { endedRunStates } from '../../../domain/vocabulary.ts';
import { exitCodes, type ExitCode } from '../calling/command-errors.ts';
import { liveChanges, type LiveChange } from '../calling/live-stream.ts';
import type { RunDetails } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { paintState, printable } from '../terminal/paint.ts';
import { between, shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';
import { logLine } from './run-screen.ts';
import { awaited, openWaits } from './run-steps.ts';

/** Prints the states, steps and log of a run until it ends. Returns the exit code. */
export async function followRun(session: Session, id: string): Promise<ExitCode> {
  const { client } = session;
  const read = (): Promise<RunDetails> => client.call((api) => api.runs.get(id));
  const printer = new RunPrinter(session);
  let run = await read();
  printer.print(run);
  if (endedRunStates.includes(run.state)) return exitCodeOf(run);
  for await (const change of liveChanges(session, `/tasks/${pathSegment(run.task_id)}/live`)) {
    if (change !== null && change.run.id !== run.id) continue;
    run = await read();
    printer.print(run);
    if (endedRunStates.includes(run.state)) break;
    // The view can lag behind the stream.
    if (change !== null && endedRunStates.includes(change.run.state)) {
      run = { ...run, ...change.run };
      printer.print(run);
      break;
    }
  }
  return exitCodeOf(run);
}

/** 1 for a run that failed or was canceled. */
export function exitCodeOf({ state }: RunDetails): ExitCode {
  return state === 'failed' || state === 'canceled' ? exitCodes.failure : exitCodes.ok;
}

/** Prints the news of a run. */
class RunPrinter {
  readonly #session: Session;
  #state = '';
  #lines = 0;
  #steps = 0;
  readonly #waits = new Set<string>();

  constructor(session: Session) {
    this.#session = session;
  }

  print(run: RunDetails): void {
    const session = this.#session;
    const { paint } = session;
    const { id: run_id } = run;
    for (const line of run.log.slice(this.#lines)) {
      session.item({ run_id, log: line }, () => logLine(session, line));
    }
    for (const { step, status, error, started_at, finished_at } of run.steps.slice(this.#steps)) {
      session.item({ run_id, step: { step, status, error } }, () => {
        const took = between(started_at, finished_at);
        const head = `step ${step} ${status}${took === '' ? '' : ` after ${took}`}`;
        return paintState(paint, status, printable(error === null ? head : `${head}: ${error}`));
      });
    }
    this.#lines = run.log.length;
    this.#steps = run.steps.length;
    this.#printState(run);
    for (const wait of openWaits(run)) {
      if (this.#waits.has(wait.id)) continue;
      this.#waits.add(wait.id);
      const { step } = wait;
      session.item({ run_id, wait }, () => printable(`step ${step} waits for ${awaited(wait)}`));
    }
  }

  #printState(run: RunDetails): void {
    const session = this.#session;
    const { paint } = session;
    const state = `${run.state} ${run.attempt}`;
    if (state === this.#state) return;
    this.#state = state;
    session.item({ run_id: run.id, state: run.state, error: run.error }, () => {
      const attempt = run.attempt > 1 ? `, attempt ${run.attempt}` : '';
      const error = run.error === null ? '' : `: ${printable(run.error)}`;
      return `${paintState(paint, run.state)}${attempt}${error}`;
    });
  }
}

/** Prints every change of runs until it is interrupted. */
export async function followRuns(
  session: Session,
  query: { readonly task_id: string | undefined; readonly state: string | undefined },
): Promise<void> {
  for await (const change of liveChanges(session, '/runs/live', query)) {
    if (change !== null) session.item(change, () => changeLine(session, change));
  }
}

function changeLine({ paint }: Session, { at, run, step, progressed }: LiveChange): string {
  const lines = progressed?.log?.map(({ message }) => message) ?? [];
  const what = step === null ? lines.join('; ') : ` step ${step.step} ${step.status}`;
  const error = step === null && run.error !== null ? `: ${run.error}` : '';
  const state = paintState(paint, run.state, run.state.padEnd(9));
  const rest = printable(`${what}${error}`.trim());
  return `${paint.faint(shortTime(at))} ${state} ${run.id} ${paint.faint(`of ${run.task_id}`)} ${rest}`.trim();
}
