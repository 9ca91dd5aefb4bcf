import { copyArtifacts, type ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import { RefusalError } from '../../domain/errors.ts';
import { load } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import {
  awaitedRunFold,
  childWaitFold,
  endOfAwaited,
  fateOfChild,
} from '../../domain/runs/child-run.ts';
import { MAX_RESULT_BYTES } from '../../domain/pipeline/json-size.ts';
import { cancelRunIn } from '../../domain/runs/run-cancellation.ts';
import { isOpen, type Wait } from '../../domain/runs/run-waits.ts';
import { hasEnded, runFold } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { Leadership } from '../processes/leadership.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import type { RunParts } from '../runs/run-work.ts';
import { PersistentWork } from './persistent-work.ts';
import type { WaitResumer } from './wait-resumer.ts';

/** The message that reports a failure. */
const FAILURE = 'could not check for runs whose parent was stopped';

/** Milliseconds between two checks of all waits and children, which find work that a dead process has left. */
const CHECK_EVERY = 30_000;

/** How many streams a check reads at the same time. */
const CONCURRENT_READS = 32;

interface ChildRunsOptions extends Pick<RunParts, 'store' | 'queue' | 'clock' | 'telemetry'> {
  readonly resumer: WaitResumer;
  readonly leadership: Leadership;
  /** This process, in the metadata. */
  readonly source: string;
  /** Stores large outputs. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
}

/**
 * Ends the waits for runs that have ended, and cancels the runs whose wait was stopped, for example because the waiting
 * run was canceled. Only the leader does this; the appends decide.
 */
export class ChildRuns {
  readonly #options: ChildRunsOptions;
  readonly #work: PersistentWork;
  /** By awaited run: the runs that wait for it. Some may no longer wait. */
  readonly #awaiting = new Map<string, Set<string>>();
  /** Children that continue without their parents. */
  readonly #independent = new Set<string>();

  constructor(options: ChildRunsOptions) {
    this.#options = options;
    const { clock, telemetry, queue } = options;
    const failure = 'could not end the wait for a run, or cancel it';
    this.#work = new PersistentWork({ clock, telemetry, failure });
    queue.subscribe({
      onWaits: (run) => this.#take(run),
      onFinished: (run) => this.#finished(run),
    });
  }

  /**
   * Checks all waits and children whenever this process starts to lead, and then periodically, until the signal is
   * aborted.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { leadership, queue, clock } = this.#options;
    while (!signal.aborted) {
      await leadership.untilLeading(signal);
      await leadership.whileLeading(signal, async ({ signal: ending }) => {
        while (!ending.aborted) {
          await queue.passed(BEGINNING, ending).catch(() => {});
          if (!ending.aborted) await this.#check();
          await clock.sleep(CHECK_EVERY, ending).catch(() => {});
        }
      });
    }
  }

  /**
   * Whether the run that a due wait waits for is unfinished; true for other kinds of waits. If the run has ended, this
   * ends the wait.
   * @throws EventStoreError
   */
  async isUnmet(run: QueuedRun, { waits_for, wait_id }: Wait): Promise<boolean> {
    return waits_for.kind !== 'run' || !(await this.#tryToEnd(run.id, wait_id, waits_for.run_id));
  }

  /** Starts nothing more. Resolves when nothing is being written. Never rejects. */
  stop(): Promise<void> {
    return this.#work.stop();
  }

  #take(run: QueuedRun): void {
    const { leadership } = this.#options;
    for (const { waits_for, resumed, wait_id } of run.waits) {
      if (waits_for.kind !== 'run') continue;
      const { run_id: awaited } = waits_for;
      if (resumed === null) this.#await(run.id, wait_id, awaited);
      else if (resumed.by.kind === 'stopped' && leadership.leads) this.#cancel(run.id, awaited);
    }
  }

  #await(runId: string, waitId: string, awaitedId: string): void {
    const { queue, leadership } = this.#options;
    const waiting = this.#awaiting.get(awaitedId);
    if (waiting === undefined) this.#awaiting.set(awaitedId, new Set([runId]));
    else waiting.add(runId);
    // The awaited run has not ended yet.
    if (!leadership.leads || queue.get(awaitedId) !== undefined) return;
    this.#end(runId, waitId, awaitedId);
  }

  #finished({ id }: QueuedRun): void {
    this.#independent.delete(id);
    if (this.#options.leadership.leads) this.#endWaitsFor(id);
  }

  #endWaitsFor(awaitedId: string): void {
    const { queue } = this.#options;
    const waiting = this.#awaiting.get(awaitedId) ?? [];
    let isAwaited = false;
    for (const runId of waiting) {
      for (const wait of queue.get(runId)?.waits ?? []) {
        const { waits_for, wait_id } = wait;
        if (!isOpen(wait) || waits_for.kind !== 'run' || waits_for.run_id !== awaitedId) continue;
        isAwaited = true;
        this.#end(runId, wait_id, awaitedId);
      }
    }
    if (!isAwaited) this.#awaiting.delete(awaitedId);
  }

  #end(runId: string, waitId: string, awaitedId: string): void {
    void this.#work.add(`end ${waitId}`, async () => {
      await this.#tryToEnd(runId, waitId, awaitedId);
    });
  }

  /** @returns whether the awaited run has ended */
  async #tryToEnd(runId: string, waitId: string, awaitedId: string): Promise<boolean> {
    const { store, queue, resumer, artifacts } = this.#options;
    const { state } = await load(store, streams.run(awaitedId), awaitedRunFold);
    const maxBytes = Math.max(artifacts?.maxBytes ?? 0, MAX_RESULT_BYTES);
    const end = endOfAwaited(awaitedId, state, maxBytes);
    const run = queue.get(runId);
    if (end !== null && run !== undefined) {
      // The output may refer to artifacts of the child.
      await copyArtifacts(artifacts, end.result, awaitedId, runId);
      await resumer.resume(run, waitId, end);
    }
    return end !== null;
  }

  #cancel(parentId: string, childId: string): void {
    void this.#work.add(`cancel ${childId}`, () => this.#cancelChild(parentId, childId));
  }

  /** If a duplicate request returned a run that already existed, the parent must not cancel it. */
  async #cancelChild(parentId: string, childId: string): Promise<void> {
    const { store, clock, source } = this.#options;
    const { state } = await load(store, streams.run(childId), runFold);
    if (!('request' in state) || hasEnded(state)) return;
    if (state.request.parent?.run_id !== parentId) return;
    const commandId = nameBasedId('parent cancels', parentId, childId);
    const cause = { actor: 'service', source, correlationId: parentId, causationId: parentId };
    const reason = 'the run that waited for it was stopped';
    try {
      await cancelRunIn(store, childId, { ...cause, commandId, reason, now: clock.now() });
    } catch (error) {
      // It has ended in the meantime.
      if (!(error instanceof RefusalError)) throw error;
    }
  }

  async #check(): Promise<void> {
    const { queue, telemetry } = this.#options;
    for (const awaited of [...this.#awaiting.keys()]) {
      if (queue.get(awaited) === undefined) this.#endWaitsFor(awaited);
    }
    const children = [...queue.all()].filter((run) => this.#mayBeAbandoned(run));
    try {
      await mapInBatches(children, CONCURRENT_READS, (child) => this.#checkChild(child));
      telemetry.failures.worked(FAILURE);
    } catch (error) {
      telemetry.failures.failed(FAILURE, error);
    }
  }

  #mayBeAbandoned({ id, parentRunId }: QueuedRun): boolean {
    if (parentRunId === null || this.#independent.has(id)) return false;
    const waits = this.#options.queue.get(parentRunId)?.waits ?? [];
    return !waits.some((wait) => {
      return isOpen(wait) && wait.waits_for.kind === 'run' && wait.waits_for.run_id === id;
    });
  }

  async #checkChild({ id, parentRunId }: QueuedRun): Promise<void> {
    if (parentRunId === null) return;
    const { store } = this.#options;
    const { state } = await load(store, streams.run(parentRunId), childWaitFold(id));
    const fate = fateOfChild(state);
    if (fate === 'cancel') this.#cancel(parentRunId, id);
    if (fate === 'leave') this.#independent.add(id);
  }
}
