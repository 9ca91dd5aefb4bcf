import { UnusableServerError, serverProblemOf } from '../../domain/server-problem.ts';
import { FailureLog } from '../../observability/failure-log.ts';
import type { Failures, Log } from '../../observability/telemetry.ts';
import type {
  PlainProblem,
  ProblemMessage,
  ProjectorMessage,
  WorkMessage,
} from './projector-protocol.ts';

/**
 * The failures of a projector. Problems of servers are passed on to its process, whose other parts have them too. Other
 * failures are reported here.
 */
export function projectorFailures(log: Log, send: (message: ProjectorMessage) => void): Failures {
  const own = new FailureLog(log);
  const pass = (
    problem: UnusableServerError,
    change: ProblemMessage['change'],
    former?: UnusableServerError,
  ): void =>
    send({ kind: 'problem', change, problem: plain(problem), former: former && plain(former) });
  return {
    failed(work, error, fields = {}) {
      const problem = serverProblemOf(error);
      if (problem === null) return own.failed(work, error, fields);
      log.debug(work, { ...fields, error });
      pass(problem, 'met');
    },
    worked: (work) => own.worked(work),
    unusable: (problem, former) => pass(problem, 'unusable', former),
    usable: (problem) => pass(problem, 'usable'),
  };
}

/**
 * Passes on failures of work that the other parts of the process do as well. They then have one line for the process.
 * Stacks are logged here, at level debug.
 */
export function failuresOfProcess(log: Log, send: (message: ProjectorMessage) => void): Failures {
  return {
    ...projectorFailures(log, send),
    failed(work, error, fields = {}) {
      log.debug(work, { ...fields, error });
      send({ kind: 'work', work, error: error instanceof Error ? error.message : String(error) });
    },
    worked: (work) => send({ kind: 'work', work, error: null }),
  };
}

/** Reports how work goes that a projector has passed on. */
export function reportWork(failures: Failures, { work, error }: WorkMessage): void {
  if (error === null) failures.worked(work);
  else failures.failed(work, new Error(error));
}

/** Reports the failures that a projector has passed on. */
export function reportProblem(
  failures: Failures,
  work: string,
  { change, problem, former }: ProblemMessage,
): void {
  const same = new UnusableServerError(problem);
  if (change === 'met') failures.failed(work, same);
  else if (change === 'usable') failures.usable(same);
  else failures.unusable(same, former && new UnusableServerError(former));
}

/** The fields of a problem, in a form that a thread can send. */
function plain({ kind, server, message, summary, remedy }: UnusableServerError): PlainProblem {
  return { kind, server, message, summary, remedy };
}
