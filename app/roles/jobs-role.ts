import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { Clock } from '../../domain/clock.ts';
import type { SecretAccess } from '../../domain/secrets/secret-access.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Hold } from '../../scheduler/hold.ts';
import { Jobs } from '../../scheduler/jobs/jobs.ts';
import { RunQueue } from '../../scheduler/runs/run-queue.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Stores } from '../stores.ts';
import type { LiveIndexes } from './live-indexes.ts';
import type { Supervisor } from './supervisor.ts';

/** The shared parts with which a process gives jobs to workers. */
export interface SharedParts {
  readonly stores: Stores;
  readonly indexes: LiveIndexes;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly supervisor: Supervisor;
  readonly hold: Hold;
  readonly secrets: SecretAccess;
}

/**
 * Creates the part of the HTTP interface that gives jobs to workers. A process that executes no runs itself starts to
 * follow runs at the first request of a worker.
 */
export function createJobs(
  options: SharedParts & {
    readonly configuration: Pick<Configuration, 'jobLeaseSeconds'>;
    readonly artifacts: ArtifactKeeping;
    /** The runs that this process executes; undefined: none. */
    readonly queue: RunQueue | undefined;
  },
): Jobs {
  const { stores, indexes, configuration, clock, telemetry, supervisor, hold, secrets } = options;
  const { artifacts } = options;
  const { store, readModel, coordination } = stores;
  const { pinnedTasks: tasks, workers: directory, owners } = indexes;
  const queue = options.queue ?? new RunQueue(store, readModel, clock, telemetry, false);
  const begin = (): void => {
    if (options.queue !== undefined) return;
    supervisor.supervise('following jobs', (started) => queue.follow(supervisor.signal, started));
  };
  const { jobLeaseSeconds: leaseSeconds } = configuration;
  const { values } = secrets;
  const parts = { store, coordination, queue, tasks, directory, clock, telemetry, hold };
  const { weightOf } = indexes.quotas;
  return new Jobs({ ...parts, leaseSeconds, artifacts, owners, begin, weightOf, secrets: values });
}
