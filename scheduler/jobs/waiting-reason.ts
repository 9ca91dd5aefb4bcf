import { toIso } from '../../domain/clock.ts';
import type { RegisteredWorker } from '../../domain/workers/worker.ts';
import { hasLabels } from '../../domain/workers/worker.ts';
import type { Job, Labels } from './job.ts';

/** Explains why a step is still waiting for a worker. */
export function waitingReason(
  wanted: {
    /** The run's namespace; workers of other namespaces cannot get its jobs. */
    readonly namespace: string;
    readonly tool: string;
    readonly labels: Labels | undefined;
    /** The job, if this process knows it. */
    readonly job: Job | undefined;
    /** The worker that has the job, or null. */
    readonly holder: string | null;
  },
  known: {
    readonly workers: Iterable<RegisteredWorker>;
    /** Whether a worker was heard of recently. */
    readonly isHeard: (workerId: string) => boolean;
    readonly held: boolean;
    readonly now: number;
  },
): string {
  const { namespace, tool, labels, job, holder } = wanted;
  const active = [...known.workers].filter(
    (worker) => worker.state === 'active' && worker.namespace === namespace,
  );
  if (holder !== null) {
    const worker = active.find(({ id }) => id === holder);
    return `worker ${worker?.name ?? holder} is doing it`;
  }
  if (known.held) return 'the service is on hold';
  if (job !== undefined && job.notBefore > known.now) {
    return `the next try starts at ${toIso(job.notBefore)}`;
  }
  const offering = active.filter(({ tools }) => tools.some(({ name }) => name === tool));
  if (offering.length === 0) return `no worker offers ${tool}`;
  const fitting = offering.filter((worker) => hasLabels(worker.labels, labels));
  if (fitting.length === 0) {
    const needed = Object.entries(labels ?? {}).map(([label, value]) => `${label}=${value}`);
    return `no worker that offers ${tool} has the labels ${needed.join(', ')}`;
  }
  const heard = fitting.filter(({ id }) => known.isHeard(id));
  if (heard.length === 0) return `no worker that offers ${tool} has asked for jobs recently`;
  const unfit = job?.unfit ?? new Set<object>();
  const accepts = ({ tools }: RegisteredWorker): boolean =>
    tools.some(({ name, schema }) => name === tool && !unfit.has(schema));
  if (!heard.some(accepts)) return `the arguments do not fit the schema of any worker of ${tool}`;
  return `all workers that offer ${tool} are busy`;
}
