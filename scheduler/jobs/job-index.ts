import { fromIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { isOpen, type Wait } from '../../domain/runs/run-waits.ts';
import { hasLabels } from '../../domain/workers/worker.ts';
import { toolKey } from '../../projections/views/workers.ts';
import { FairQueue } from '../fairness/fair-queue.ts';
import { RecentTurns } from '../fairness/recent-turns.ts';
import { Heap } from '../heap.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { Job, Labels, Offer } from './job.ts';

/** Free jobs of one tool that need the same labels. */
interface Bucket {
  readonly labels: Labels | undefined;
  readonly free: FairQueue<Job>;
}

export interface IndexListener {
  /** Called when a job has become free. */
  readonly onFree: (job: Job) => void;
  /** Called when the leases of jobs may be over. Each job must then be passed to `free`, `leased` or `drop`. */
  readonly onLookDue: (jobs: readonly Job[]) => void;
}

type WeightOf = ((namespace: string) => number) | undefined;

/** The most ended jobs that are remembered. */
const MAX_ENDED = 50_000;

/**
 * The open jobs, which are suspended steps that wait for a worker, by tool and labels. The queue of runs keeps the
 * index current.
 */
export class JobIndex {
  readonly #clock: Clock;
  readonly #listener: IndexListener;
  readonly #jobs = new Map<string, Job>();
  readonly #byRun = new Map<string, Job[]>();
  /** Free jobs by tool of a namespace, then by labels. */
  readonly #buckets = new Map<string, Map<string, Bucket>>();
  readonly #later = new Heap<Job>((one, other) => one.notBefore < other.notBefore);
  /** Leased jobs by time of their next check; entries whose `lookAt` differs are stale. */
  readonly #leased = new Heap<{ readonly at: number; readonly job: Job }>(
    (one, other) => one.at < other.at,
  );
  /** Ended jobs, with their namespaces. */
  readonly #ended = new Map<string, string>();
  /** The turns of agents and namespaces whose jobs were picked. */
  readonly #picked = new RecentTurns();
  readonly #weightOf: WeightOf;
  #turns = 0;
  #cancelLater: Cancel = () => {};
  #laterAt = Infinity;
  #cancelLook: Cancel = () => {};
  #lookAt = Infinity;
  #stopped = false;

  /** @param weightOf a namespace's share, 1 or more. Default: 1 for each */
  constructor(
    queue: Pick<RunQueue, 'subscribe'>,
    clock: Clock,
    listener: IndexListener,
    weightOf?: WeightOf,
  ) {
    this.#weightOf = weightOf;
    this.#clock = clock;
    this.#listener = listener;
    queue.subscribe({ onWaits: (run) => this.#sync(run) });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelLater();
    this.#cancelLook();
  }

  get size(): number {
    return this.#jobs.size;
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id);
  }

  all(): IterableIterator<Job> {
    return this.#jobs.values();
  }

  /** The namespace of a job that is open or has ended; undefined if this process does not remember it. */
  namespaceOf(id: string): string | undefined {
    return this.#jobs.get(id)?.namespace ?? this.#ended.get(id);
  }

  /**
   * Takes the first free jobs that fit a worker, by the turns of namespaces and agents, then by priority and age. The
   * caller must pass on or pass back each of them.
   */
  pick(worker: Offer, most: number): readonly Job[] {
    const picked: Job[] = [];
    const passedOver: Job[] = [];
    const buckets = this.#bucketsFor(worker);
    while (picked.length < most) {
      const best = this.#firstOf(buckets);
      if (best === undefined) break;
      const job = best.bucket.free.pop();
      if (job === undefined) break;
      this.#picked.note(job);
      if (job.unfit?.has(best.schema) === true) passedOver.push(job);
      else {
        job.state = 'taking';
        picked.push(job);
      }
    }
    for (const job of passedOver) this.#bucketOf(job).free.push(job);
    return picked;
  }

  /** Whether any job of a tool is free. @param key of {@link toolKey} */
  hasFreeOf(key: string): boolean {
    for (const bucket of this.#buckets.get(key)?.values() ?? []) {
      if (bucket.free.peek() !== undefined) return true;
    }
    return false;
  }

  /** Notes that a worker may have the job. */
  free(job: Job): void {
    if (job.state === 'over' || job.state === 'free') return;
    if (job.notBefore > this.#clock.now()) {
      job.state = 'later';
      this.#later.push(job);
      this.#armLater();
      return;
    }
    job.state = 'free';
    this.#bucketOf(job).free.push(job);
    this.#listener.onFree(job);
  }

  /** Notes that a worker has the job for a number of milliseconds. */
  leased(job: Job, remaining: number): void {
    if (job.state === 'over') return;
    job.state = 'leased';
    job.lookAt = this.#clock.steady() + remaining;
    this.#leased.push({ at: job.lookAt, job });
    this.#armLook();
  }

  /** Notes that the job is over, although the queue does not know it yet. */
  drop(job: Job): void {
    if (job.state === 'over') return;
    job.state = 'over';
    this.#jobs.delete(job.id);
    const left = (this.#byRun.get(job.runId) ?? []).filter((each) => each !== job);
    if (left.length === 0) this.#byRun.delete(job.runId);
    else this.#byRun.set(job.runId, left);
    this.#ended.set(job.id, job.namespace);
    if (this.#ended.size > MAX_ENDED) {
      const [oldest] = this.#ended.keys();
      if (oldest !== undefined) this.#ended.delete(oldest);
    }
  }

  /** Applies a run's waits. */
  #sync(run: QueuedRun): void {
    const known = this.#byRun.get(run.id);
    const open = run.ended ? [] : run.waits.filter(isOpenJob);
    if (known === undefined && open.length === 0) return;
    if (known !== undefined) {
      const left = new Set(open.map(({ wait_id }) => wait_id));
      for (const job of known) if (!left.has(job.id)) this.drop(job);
    }
    for (const wait of open) {
      if (!this.#jobs.has(wait.wait_id) && !this.#ended.has(wait.wait_id)) this.#add(run, wait);
    }
  }

  #add(run: QueuedRun, { wait_id, step, since, until, tries = 1, waits_for }: JobWait): void {
    this.#turns += 1;
    const job: Job = {
      id: wait_id,
      runId: run.id,
      taskId: run.taskId,
      namespace: run.namespace,
      agent: run.createdBy,
      step,
      tool: waits_for.tool,
      labels: waits_for.labels,
      priority: waits_for.priority,
      since: fromIso(since),
      turn: this.#turns,
      limit: waits_for.timeout_seconds * 1000,
      until: fromIso(until),
      tries,
      notBefore: waits_for.not_before === undefined ? 0 : fromIso(waits_for.not_before),
      state: 'taking',
      lookAt: Infinity,
      unfit: null,
    };
    this.#jobs.set(job.id, job);
    const ofRun = this.#byRun.get(run.id);
    if (ofRun === undefined) this.#byRun.set(run.id, [job]);
    else ofRun.push(job);
    this.free(job);
  }

  #bucketOf({ namespace, tool, labels }: Job): Bucket {
    const name = toolKey(namespace, tool);
    const ofTool = this.#buckets.get(name) ?? new Map<string, Bucket>();
    this.#buckets.set(name, ofTool);
    const key = labels === undefined ? '' : JSON.stringify(Object.entries(labels).toSorted());
    const known = ofTool.get(key);
    if (known !== undefined) return known;
    const free = new FairQueue<Job>({
      before: goesBefore,
      partyOf: (job) => job,
      isLive: (job) => job.state === 'free',
      weightOf: this.#weightOf,
    });
    const bucket = { labels, free };
    ofTool.set(key, bucket);
    return bucket;
  }

  #bucketsFor(worker: Offer): readonly Open[] {
    const found: Open[] = [];
    for (const { name, schema } of worker.tools) {
      const ofTool = this.#buckets.get(toolKey(worker.namespace, name));
      if (ofTool === undefined) continue;
      for (const [key, bucket] of ofTool) {
        if (bucket.free.peek() === undefined) ofTool.delete(key);
        else if (hasLabels(worker.labels, bucket.labels)) found.push({ bucket, schema });
      }
    }
    return found;
  }

  /** The bucket whose next job belongs to the namespace, and then to the agent, that has waited longest for a turn. */
  #firstOf(buckets: readonly Open[]): Open | undefined {
    let first: Open | undefined;
    let job: Job | undefined;
    for (const open of buckets) {
      const top = open.bucket.free.peek();
      if (top === undefined) continue;
      const order = job === undefined ? -1 : this.#picked.compare(top, job);
      if (order > 0 || (order === 0 && job !== undefined && !goesBefore(top, job))) continue;
      first = open;
      job = top;
    }
    return first;
  }

  #armLater(): void {
    const at = this.#later.peek()?.notBefore ?? Infinity;
    if (this.#stopped || at === this.#laterAt) return;
    this.#cancelLater();
    this.#laterAt = at;
    if (at !== Infinity) this.#cancelLater = this.#clock.at(at, () => this.#wakeLater());
  }

  #wakeLater(): void {
    this.#laterAt = Infinity;
    const now = this.#clock.now();
    for (let top = this.#later.peek(); top !== undefined && top.notBefore <= now;) {
      this.#later.pop();
      if (top.state === 'later') this.free(top);
      top = this.#later.peek();
    }
    this.#armLater();
  }

  #armLook(): void {
    const at = this.#leased.peek()?.at ?? Infinity;
    if (this.#stopped || at >= this.#lookAt) return;
    this.#cancelLook();
    this.#lookAt = at;
    const left = Math.max(0, at - this.#clock.steady());
    this.#cancelLook = this.#clock.after(left, () => this.#wakeLook(), { background: true });
  }

  #wakeLook(): void {
    this.#lookAt = Infinity;
    const now = this.#clock.steady();
    const due: Job[] = [];
    for (let top = this.#leased.peek(); top !== undefined && top.at <= now;) {
      this.#leased.pop();
      if (top.job.state === 'leased' && top.job.lookAt === top.at) {
        top.job.state = 'taking';
        due.push(top.job);
      }
      top = this.#leased.peek();
    }
    if (due.length > 0) this.#listener.onLookDue(due);
    this.#armLook();
  }
}

type JobWait = Wait & { readonly waits_for: Extract<Wait['waits_for'], { kind: 'job' }> };

const isOpenJob = (wait: Wait): wait is JobWait => wait.waits_for.kind === 'job' && isOpen(wait);

/** A bucket that is open to a worker, with the worker's schema of its tool. */
interface Open {
  readonly bucket: Bucket;
  readonly schema: object;
}

function goesBefore(a: Job, b: Job): boolean {
  if (a.priority !== b.priority) return a.priority < b.priority;
  return a.since !== b.since ? a.since < b.since : a.turn < b.turn;
}
