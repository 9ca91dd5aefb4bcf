import type { Clock, Instant } from '../../domain/clock.ts';
import type { KeyEvent } from '../../domain/events/catalogue.ts';
import type { KeyChange } from '../../domain/keys/key-stream.ts';
import {
  LONGEST_LINE,
  holdKey,
  nextInLine,
  type KeyClaim,
  type KeyName,
  type KeyState,
  type KeyWaiter,
} from '../../domain/keys/key.ts';
import type { Grant } from './key-grants.ts';
import { claimOf, streamOf } from './key-names.ts';
import type { KeyWatch } from './key-watch.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { QueuedRun, RunQueue } from '../runs/run-queue.ts';

/** How often a slot is handed on in a process whose worker is not the first choice, before it is given away. */
const MOST_TURNS = 16;

/** Keys whose turns are counted; where there are more, the count begins again. */
const MOST_COUNTED = 10_000;

/**
 * Decides for runs that wait in this process, without their asking: who gives back a slot hands it on to the next in
 * line and fills the line up, all in one append. Each asking for itself would be an append for each, a slot of the worker
 * while it is under way, and a key that nobody has in the meantime.
 */
export class KeyLine {
  private readonly queue: RunQueue;
  private readonly tasks: PinnedTasks;
  private readonly watch: KeyWatch;
  private readonly clock: Clock;
  /** By stream of a key: how often its slot was handed on here since it was last given away. */
  private readonly turns = new Map<string, number>();
  /** Whether a run that is put back to the queue, and handed its key, is taken from there at once. */
  hasRoom: (run: QueuedRun) => boolean = () => false;

  constructor(options: {
    readonly queue: RunQueue;
    readonly tasks: PinnedTasks;
    readonly watch: KeyWatch;
    readonly clock: Clock;
  }) {
    this.queue = options.queue;
    this.tasks = options.tasks;
    this.watch = options.watch;
    this.clock = options.clock;
  }

  /**
   * Gives the slot that becomes free to the next in line, where that can begin here and now.
   * @param released what gives the slot back
   * @returns all events, and to whom the slot is handed
   */
  handOn(name: KeyName, released: readonly KeyEvent[], now: Instant): KeyChange<Grant | null> {
    const [last] = released;
    if (last === undefined || name.kind !== 'concurrency') {
      return { events: released, answer: null };
    }
    const state = stateAfter(last);
    const [waiter] = nextInLine(state);
    const next = waiter === undefined ? undefined : this.queue.get(waiter.run_id);
    const mayGo =
      waiter !== undefined &&
      next !== undefined &&
      !next.taken &&
      this.watch.isWaitingFor(next.id, name) &&
      this.hasRoom(next) &&
      !this.isGivenAway(name, waiter);
    const claim = mayGo ? this.claimNow(next, name) : undefined;
    const { outcome, events } = claim ? holdKey(state, claim, now) : noHold;
    const line = this.fill(events[0] === undefined ? state : stateAfter(events[0]), now);
    const answer =
      next && claim && outcome === 'held'
        ? { run: next, name, attempt: claim.attempt, revision: next.revision, at: now }
        : null;
    // Who has it now says as well who has it no more.
    return { events: [...(outcome === 'held' ? events : released), ...line], answer };
  }

  /**
   * Whether a slot is left to another worker, which is the first choice for the run: now and then, as it may have no room,
   * and the key is free until that is clear.
   */
  private isGivenAway(name: KeyName, waiter: KeyWaiter): boolean {
    const stream = streamOf(name);
    if (this.watch.isMineToLead(name, waiter)) return false;
    const turns = (this.turns.get(stream) ?? 0) + 1;
    if (this.turns.size >= MOST_COUNTED) this.turns.clear();
    if (turns < MOST_TURNS) this.turns.set(stream, turns);
    else this.turns.delete(stream);
    return turns >= MOST_TURNS;
  }

  /**
   * Puts those who have just come into the line, and where it has become short those who found it full: one event, as
   * each carries the whole line. None is given a slot; who could go at once, or has other keys to think of, is told to ask
   * for himself.
   */
  fill(before: KeyState, now: Instant, coming: readonly QueuedRun[] = []): readonly KeyEvent[] {
    let state = before;
    let last: KeyEvent | undefined;
    // Nobody gets a place by coming later than others who had found none.
    const older = this.watch.unplaced(before, coming.length > 0 ? LONGEST_LINE : undefined);
    for (const run of new Set([...older, ...coming])) {
      const claim = before.kind === 'concurrency' ? this.claimNow(run, before) : undefined;
      const { outcome, events } = claim ? holdKey(state, claim, now) : noHold;
      if (claim === undefined || outcome === 'held') {
        this.queue.putBack(run, now);
        this.queue.onReady();
      }
      if (outcome === 'held') break;
      last = events[0] ?? last;
      if (events[0] !== undefined) state = stateAfter(events[0]);
    }
    return last === undefined ? [] : [last];
  }

  /** What a run that could begin now wants of a key; undefined for one that could not, or where that is not known. */
  private claimNow(run: QueuedRun, name: KeyName): KeyClaim | undefined {
    if (run.ended || run.state === 'running' || run.cancelRequested) return undefined;
    if (run.runAt > this.clock.now()) return undefined;
    const task = this.tasks.peek(run.taskId, run.taskRevision);
    // One of a paused task may have to wait on: it is asked about when it is taken from the queue.
    if (task === undefined || !this.tasks.isActive(run.taskId)) return undefined;
    return claimOf(run, task, name);
  }
}

const noHold: ReturnType<typeof holdKey> = { outcome: 'waiting', events: [] };

function stateAfter({ data }: KeyEvent): KeyState {
  const { run_id: _about, ...state } = data;
  return state;
}
