import { ServerProblem, serverProblemOf } from '../../domain/server-problem.ts';
import { FailureLog } from '../../observability/failure-log.ts';
import type { Failures, Log } from '../../observability/telemetry.ts';
import type { ProblemMessage, ProjectorMessage } from './projector-protocol.ts';

/**
 * The failures of a projector. Its process reports problems of servers, because the process's other parts have the same
 * ones; everything else is reported here.
 */
export function projectorFailures(log: Log, send: (message: ProjectorMessage) => void): Failures {
  const own = new FailureLog(log);
  const pass = (problem: ServerProblem, change: ProblemMessage['change']): void => {
    const { kind, server, message, summary, remedy } = problem;
    send({ kind: 'problem', change, problem: { kind, server, message, summary, remedy } });
  };
  return {
    failed(work, error, fields = {}) {
      const problem = serverProblemOf(error);
      if (problem === null) return own.failed(work, error, fields);
      log.debug(work, { ...fields, error });
      pass(problem, 'met');
    },
    worked: (work) => own.worked(work),
    unusable: (problem) => pass(problem, 'unusable'),
    usable: (problem) => pass(problem, 'usable'),
  };
}

/** Reports what a projector has passed on. */
export function reportProblem(
  failures: Failures,
  work: string,
  { change, problem }: ProblemMessage,
): void {
  const same = new ServerProblem(problem);
  if (change === 'met') failures.failed(work, same);
  else failures[change](same);
}
