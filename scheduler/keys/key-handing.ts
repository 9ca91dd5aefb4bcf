import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { changeInOrder, changeKey, type KeyContext } from '../../domain/keys/key-stream.ts';
import { releaseKey } from '../../domain/keys/key.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { KeyErrands } from './key-errands.ts';
import type { Grant, KeyGrants } from './key-grants.ts';
import type { KeyLine } from './key-line.ts';
import { keysOf } from './key-names.ts';
import type { KeyWatch } from './key-watch.ts';
import type { QueuedRun, RunQueue } from '../runs/run-queue.ts';
import type { HandOver } from '../runs/run-work.ts';

const ends: ReadonlySet<string> = new Set(['RunSucceeded', 'RunFailed', 'RunCanceled']);

/**
 * Gives a concurrency key back together with the end of the run that had it: the append to the key goes behind that of the
 * end in one call of the log, and is not tried unless that succeeds. A run costs a key no time in which nobody has it,
 * and the log no commit of its own. What does not work out this way is done as ever, once the end is written.
 */
export class KeyHanding {
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly line: KeyLine;
  private readonly watch: KeyWatch;
  private readonly grants: KeyGrants;
  private readonly errands: KeyErrands;
  private readonly clock: Clock;
  private readonly contextFor: (correlationId: string, now: Instant) => KeyContext;
  private readonly handedOver = new WeakSet<QueuedRun>();

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly line: KeyLine;
    readonly watch: KeyWatch;
    readonly grants: KeyGrants;
    readonly errands: KeyErrands;
    readonly clock: Clock;
    readonly contextFor: (correlationId: string, now: Instant) => KeyContext;
  }) {
    this.store = options.store;
    this.queue = options.queue;
    this.line = options.line;
    this.watch = options.watch;
    this.grants = options.grants;
    this.errands = options.errands;
    this.clock = options.clock;
    this.contextFor = options.contextFor;
  }

  /** @returns null where the key is to be given back as ever */
  handOver(run: QueuedRun, task: LiveTask, end: RunEvent): HandOver | null {
    const [name, second] = keysOf(task, run);
    if (name?.kind !== 'concurrency' || second !== undefined || !ends.has(end.type)) return null;
    const known = this.watch.peek(name);
    if (known === undefined) return null;
    const now = this.clock.now();
    let grant: Grant | null = null;
    const context = this.contextFor(run.id, now);
    const change = changeInOrder(this.store, name, context, known, (state) => {
      const handed = this.line.handOn(name, releaseKey(state, run.id), now);
      grant = handed.answer;
      return handed.events;
    });
    if (change === null) return null;
    return {
      append: change.append,
      done: ({ revision }) => {
        change.over();
        this.handedOver.add(run);
        this.watch.forget(run.id);
        this.begin(grant);
        this.watch.note(name, change.state, revision);
        this.watch.wakeWaiting(name);
      },
      failed: () => {
        change.over();
        // It may have the key all the same, if the answer was lost: it asks.
        if (grant !== null) this.queue.putBack(grant.run, this.clock.now());
        this.queue.onReady();
      },
    };
  }

  /** Whether a run's key was given back with its end. */
  isHandedOver(run: QueuedRun): boolean {
    return this.handedOver.has(run);
  }

  /** Gives back what was handed to runs that will not begin here: else each would have its key for a lease. */
  giveUp(): void {
    for (const { run, name, at } of this.grants.withdraw()) {
      const since = toIso(at);
      const work = async (): Promise<void> => {
        const context = this.contextFor(run.id, this.clock.now());
        await changeKey(this.store, name, context, (state) => {
          // Who came back for it elsewhere holds it since later.
          const isSame = state.holders.some((own) => own.run_id === run.id && own.since === since);
          return { events: isSame ? releaseKey(state, run.id) : [], answer: null };
        });
      };
      this.errands.begin(this.errands.persist(run.id, name, work));
    }
  }

  /** A run was handed the key, and may begin. */
  begin(grant: Grant | null): void {
    if (grant === null) return;
    this.grants.note(grant);
    this.queue.putBack(grant.run, this.clock.now());
    this.queue.onReady();
  }
}
