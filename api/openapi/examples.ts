import { agentExamples } from './examples/agents.ts';
import { approvalExamples } from './examples/approvals.ts';
import { eventExamples } from './examples/events.ts';
import { exportExamples } from './examples/exports.ts';
import { historyExamples } from './examples/history.ts';
import { namespaceExamples } from './examples/namespaces.ts';
import { operationsExamples } from './examples/operations.ts';
import { runExamples } from './examples/runs.ts';
import { secretExamples } from './examples/secrets.ts';
import { serviceExamples } from './examples/service.ts';
import { statisticsExamples } from './examples/statistics.ts';
import { taskExamples } from './examples/tasks.ts';
import { workerExamples } from './examples/workers.ts';

/** Examples of one operation, as JSON. */
export interface Examples {
  readonly body?: unknown;
  /** By status. */
  readonly responses?: Readonly<Record<number, unknown>>;
  /** Examples of the 200 response in its other media types. */
  readonly otherMediaTypes?: Readonly<Record<string, string>>;
  /** Path and query parameters by name. Overrides {@link parameterExamples}. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** The examples of the service's own operations, by operation id. */
export const examples: Readonly<Record<string, Examples>> = {
  ...namespaceExamples,
  ...agentExamples,
  ...secretExamples,
  ...taskExamples,
  ...runExamples,
  ...statisticsExamples,
  ...approvalExamples,
  ...workerExamples,
  ...eventExamples,
  ...exportExamples,
  ...operationsExamples,
  ...historyExamples,
  ...serviceExamples,
};
