import { ServerProblem, serverProblemOf } from '../../domain/server-problem.ts';
import { FailureLog } from '../../observability/failure-log.ts';
import type { Failures, Log } from '../../observability/telemetry.ts';
import type { PlainProblem, ProblemMessage, ProjectorMessage } from './projector-protocol.ts';

/**
 * The failures of a projector. Its process reports problems of servers, because the process's other parts have the same
 * ones; everything else is reported here.
 */
export function projectorFailures(log: Log, send: (message: ProjectorMessage) => void): Failures {
  const own = new FailureLog(log);
  const pass = (
    problem: ServerProblem,
    change: ProblemMessage['change'],
    former?: ServerProblem,
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

/** Reports what a projector has passed on. */
export function reportProblem(
  failures: Failures,
  work: string,
  { change, problem, former }: ProblemMessage,
): void {
  const same = new ServerProblem(problem);
  if (change === 'met') failures.failed(work, same);
  else if (change === 'usable') failures.usable(same);
  else failures.unusable(same, former && new ServerProblem(former));
}

/** As a thread can send it. */
function plain({ kind, server, message, summary, remedy }: ServerProblem): PlainProblem {
  return { kind, server, message, summary, remedy };
}
