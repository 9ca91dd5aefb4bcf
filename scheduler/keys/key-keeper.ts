import type { Clock, Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { Judgement, type KeyPlace } from '../../domain/keys/key-judgement.ts';
import { changeKey, type KeyChange, type KeyContext } from '../../domain/keys/key-stream.ts';
import {
  LONGEST_LINE,
  holdKey,
  leaveLine,
  releaseAll,
  releaseKey,
  standingOf,
  standsBehindTheLine,
  type KeyClaim,
  type KeyDecision,
  type KeyName,
  type KeyState,
} from '../../domain/keys/key.ts';
import { cancelRunsAhead, placesOf } from '../../domain/runs/run-request.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { KeyErrands } from './key-errands.ts';
import { GRANT_LIFE, KeyGrants, type Grant } from './key-grants.ts';
import { KeyHanding } from './key-handing.ts';
import { KeyFilling } from './key-filling.ts';
import { KeyLine } from './key-line.ts';
import { KeyLooks, LOOK_EVERY } from './key-looks.ts';
import { affinityOf, claimOf, isKeyed, keysOf } from './key-names.ts';
import { KeySuspects } from './key-suspects.ts';
import { KeyWatch } from './key-watch.ts';
import type { Membership } from '../processes/membership.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Admission, HandOver } from '../runs/run-work.ts';
import type { QueuedRun, RunQueue } from '../runs/run-queue.ts';

/** One look in so many takes in every key in use that this process looks after. */
const LOOK_AT_ALL = 10;

/** A run that waits for a key is woken when its turn comes; this is for what nothing wakes. Milliseconds. */
const FALLBACK = 60_000;

const go: Admission = { kind: 'go' };

/**
 * Keeps the keys that a run needs while it runs: `concurrency_key`, and the task itself where its overlap policy is
 * not `allow`. A run of a task without either passes without a read, an append, or a turn of the event loop.
 *
 * The order of appends, and what a death between two of them leaves:
 * - `KeyHeld`, then `RunStarted`. In between: a slot of a queued run. It is still in every worker's queue, whoever takes
 *   it finds its own slot; if nobody does for a lease, whoever wants the slot takes it (`Judgement`).
 * - The run's end (or `RunAttemptFailed`), then `KeyReleased`, or in its place `KeyHeld` for the next in line (`KeyGrants`): in one
 *   call of the log where nothing stands against it (`KeyHanding`), which some engines make one commit. In between: a slot of a run that is over (or in
 *   its back-off), which whoever wants it takes at once.
 * - `RunInterrupted` releases nothing: the slot goes with the run to the next worker.
 *
 * A slot is only ever taken by an append that expects the key as it was before the run's stream was looked at, and a
 * run that comes back for its slot appends too: so of two who see it differently one loses the race.
 */
export class KeyKeeper {
  private readonly watch: KeyWatch;
  private readonly store: EventStore;
  private readonly queue: RunQueue;
  private readonly tasks: PinnedTasks;
  private readonly membership: Membership;
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly looks: KeyLooks;
  private readonly errands: KeyErrands;
  private readonly grants = new KeyGrants();
  private readonly suspects: KeySuspects;
  private readonly line: KeyLine;
  private readonly filling: KeyFilling;
  private readonly handing: KeyHanding;

  constructor(options: {
    readonly store: EventStore;
    readonly queue: RunQueue;
    readonly tasks: PinnedTasks;
    readonly membership: Membership;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.store = options.store;
    this.queue = options.queue;
    this.tasks = options.tasks;
    this.membership = options.membership;
    this.clock = options.clock;
    this.telemetry = options.telemetry;
    this.watch = new KeyWatch(options);
    this.errands = new KeyErrands(options);
    this.looks = new KeyLooks(options.clock);
    this.suspects = new KeySuspects(options);
    this.line = new KeyLine({ ...options, watch: this.watch });
    const { line, watch, errands, grants } = this;
    const contextFor = this.contextFor.bind(this);
    this.filling = new KeyFilling({ ...options, line, watch, errands, contextFor });
    this.handing = new KeyHanding({ ...options, line, watch, errands, grants, contextFor });
    this.watch.onShortLine = (name) => this.filling.soon(name, null);
    this.queue.onEnded = (run) => this.onEnded(run);
  }

  /** Whether a run that is put back to the queue is taken from there at once. Until somebody says so, no slot is handed on. */
  set hasRoom(hasRoom: (run: QueuedRun) => boolean) {
    this.line.hasRoom = hasRoom;
  }

  /** Follows the keys until the signal is aborted. */
  follow(signal: AbortSignal, started: () => void = () => {}): Promise<void> {
    return this.watch.follow(signal, started);
  }

  /** Looks at keys now and then for what nobody gave back, until the signal is aborted. */
  async mind(signal: AbortSignal): Promise<void> {
    for (let turn = 1; !signal.aborted; turn += 1) {
      await this.clock.sleep(LOOK_EVERY, signal).catch(() => {});
      if (signal.aborted) break;
      try {
        await this.look(turn % LOOK_AT_ALL === 0);
      } catch (error) {
        this.telemetry.log.warn('the keys in use could not be looked at; trying again', { error });
      }
    }
  }

  /** One look: at the keys that runs here wait for, or at all that this process looks after. */
  async look(atAll: boolean): Promise<void> {
    for (const { run, name } of this.grants.unused(this.clock.now())) {
      await this.sweep(name, (state) => placesOfRun(state, run.id), GRANT_LIFE);
    }
    const wanted = this.watch.wanted();
    for (const name of atAll ? [...wanted, ...this.watch.inUse()] : wanted) {
      await this.lookAt(name, atAll);
    }
    this.looks.forgetOld();
  }

  /** @param reads also where nobody is suspected by what is known here: that may be of the past */
  private async lookAt(name: KeyName, reads = false): Promise<void> {
    const known = this.watch.peek(name);
    if (reads || known === undefined || this.suspects.of(known.state).length > 0) {
      await this.sweep(name, (state) => this.suspects.of(state));
    }
    this.watch.wakeWaiting(name);
  }

  /** The worker takes nothing more. Resolves when all that was to be given back is, or was given up. Never rejects. */
  settled(): Promise<void> {
    this.handing.giveUp();
    return this.errands.settled();
  }

  /** Whether a run may start now: it holds its keys then. `RunExecutor` asks just before the start. */
  admit(run: QueuedRun, task: LiveTask): Admission | Promise<Admission> {
    return isKeyed(task) ? this.take(run, task) : go;
  }

  /**
   * Whether a run that could be taken now would only be told to wait for its concurrency key, as far as is known here.
   * Then it waits as if it had asked. Where many runs share a key, most that come to it are of this kind: none of
   * them costs a worker's slot, a turn of the event loop or a look at the log.
   */
  parks(run: QueuedRun): boolean {
    const task = this.tasks.peek(run.taskId, run.taskRevision);
    // What becomes of one whose task is not active, or that is canceled, is decided by who takes it.
    if (task === undefined || run.cancelRequested || !this.tasks.isActive(run.taskId)) return false;
    if (task.definition.concurrency_key === null || task.definition.overlap_policy !== 'allow') {
      return false;
    }
    const [name] = keysOf(task, run);
    const known = name && this.watch.peek(name);
    if (known === undefined || name === undefined || this.isGranted(run)) return false;
    const claim = claimOf(run, task, name);
    const { holds, placed, mayGo, ahead } = standingOf(known.state, claim);
    if (holds || mayGo) return false;
    this.watch.expect(run, name);
    this.queue.putBack(run, this.clock.now() + FALLBACK);
    if (this.looks.begins(name)) this.inBackground(run, name, () => this.lookAt(name));
    const behind = ahead >= LONGEST_LINE || this.watch.comesAfterMany(known.state, claim);
    if (!placed && !behind) this.filling.soon(name, run);
    return true;
  }

  /** Whether a run was handed its key, and needs not ask for it. */
  readonly isGranted = ({ id }: QueuedRun): boolean => this.grants.has(id);

  /** By what the worker is chosen that is the first choice for a run. */
  affinityOf(run: QueuedRun): string {
    return affinityOf(run, this.tasks.peek(run.taskId, run.taskRevision));
  }

  /** A run's turn has come, and its task lets it wait on: the others do not wait for it. */
  putOff(run: QueuedRun, task: LiveTask): void {
    if (!this.watch.isWaiting(run.id)) return;
    this.watch.forget(run.id);
    for (const name of keysOf(task, run)) {
      if (name.kind !== 'concurrency') continue;
      this.inBackground(run, name, async () => {
        const context = this.contextFor(run.id, this.clock.now());
        await changeKey(this.store, name, context, (state) => ({
          events: leaveLine(state, run.id),
          answer: null,
        }));
      });
    }
  }

  /** A run is about to end: hands its concurrency key on in the same call of the log, behind the end. */
  handOver(run: QueuedRun, task: LiveTask, end: RunEvent): HandOver | null {
    return isKeyed(task) ? this.handing.handOver(run, task, end) : null;
  }

  /** The work on a run is over here: gives back what it needs no more. */
  released(run: QueuedRun, task: LiveTask): void {
    if (isKeyed(task) && !this.handing.isHandedOver(run)) this.giveBack(run, task);
  }

  /** Somebody else has moved the run on: what was taken for it here may be what it needs no more. */
  lost(run: QueuedRun, task: LiveTask): void {
    for (const name of keysOf(task, run)) {
      this.inBackground(run, name, () => this.sweep(name, (state) => placesOfRun(state, run.id)));
    }
  }

  private async take(run: QueuedRun, task: LiveTask): Promise<Admission> {
    for (const name of keysOf(task, run)) {
      if (await this.hold(run, task, name)) continue;
      const now = this.clock.now();
      // It was moved on elsewhere while it was put in line here, and nobody else knows of that place.
      if (run.ended) this.giveBack(run, task);
      else if (run.runAt > now) this.lost(run, task);
      return { kind: 'wait', until: now + FALLBACK };
    }
    this.watch.forget(run.id);
    return go;
  }

  private async hold(run: QueuedRun, task: LiveTask, name: KeyName): Promise<boolean> {
    for (;;) {
      const now = this.clock.now();
      const claim = claimOf(run, task, name);
      if (name.kind === 'concurrency' && this.grants.use(run, claim.attempt, now)) return true;
      this.watch.expect(run, name);
      const known = this.watch.peek(name);
      if (known !== undefined && this.justWaits(known.state, claim)) return false;
      const context = this.contextFor(run.id, now);
      const { answer, state, revision } = await this.claim(name, claim, context);
      this.watch.note(name, state, revision);
      if (answer === 'held') return true;
      const cancels = task.definition.overlap_policy === 'cancel_running';
      // A run of a backfill gives way: it waits until what is under way has ended.
      if (name.kind === 'overlap' && cancels && run.trigger !== 'backfill') {
        await cancelRunsAhead(this.store, state, run.id, context);
      }
      // Woken while it was being decided: what was decided is of the past.
      this.watch.expect(run, name);
      const later = this.watch.peek(name);
      if (later === undefined || later.revision <= revision) return false;
      if (holdKey(later.state, claim, now).outcome === 'waiting') return false;
    }
  }

  /**
   * Whether a run that asks for a key can be told to wait without a look at the log: it has no turn yet, and gets its
   * place in line together with others. Now and then one asks all the same, and looks whether those ahead are still there.
   */
  private justWaits(known: KeyState, claim: KeyClaim): boolean {
    if (standsBehindTheLine(known, claim)) return true;
    if (this.watch.comesAfterMany(known, claim)) return true;
    const { holds, placed, mayGo } = standingOf(known, claim);
    if (known.kind !== 'concurrency' || holds || mayGo) return false;
    if (this.looks.isDue(known)) return false;
    if (!placed) this.filling.soon(known, this.queue.get(claim.run_id) ?? null);
    return true;
  }

  private claim(
    name: KeyName,
    claim: KeyClaim,
    context: KeyContext,
  ): ReturnType<typeof changeKey<'held' | 'waiting'>> {
    const judgement = new Judgement(this.store, context, this.membership.lease);
    const mayLook = this.looks.begins(name);
    return changeKey(this.store, name, context, async (state) => {
      const first = holdKey(state, claim, context.now);
      if (first.outcome === 'held' || !mayLook) return changeBy(this.inOrder(state, first, claim));
      const dead = await judgement.dead(name, this.suspects.of(state, claim.run_id));
      if (dead.length === 0) return changeBy(this.inOrder(state, first, claim));
      const after = releaseAll(state, dead);
      this.mended(name, dead);
      const second = holdKey(after.state, claim, context.now);
      return changeBy({ ...second, events: [...after.events, ...second.events] });
    });
  }

  /** A place in line is given together with those that are due before. */
  private inOrder(state: KeyState, decision: KeyDecision, claim: KeyClaim): KeyDecision {
    const run = this.queue.get(claim.run_id);
    if (decision.outcome === 'held' || state.kind !== 'concurrency' || !run) return decision;
    return { ...decision, events: this.line.fill(state, this.clock.now(), [run]) };
  }

  /** Takes from a key those who have lost their claim to it. */
  private async sweep(
    name: KeyName,
    suspects: (state: KeyState) => readonly KeyPlace[],
    lease = this.membership.lease,
  ): Promise<void> {
    const context = this.contextFor(name.key, this.clock.now());
    const judgement = new Judgement(this.store, context, lease);
    const { answer, state, revision } = await changeKey(this.store, name, context, async (key) => {
      const dead = await judgement.dead(name, suspects(key));
      return { events: releaseAll(key, dead).events, answer: dead };
    });
    if (answer.length > 0) this.mended(name, answer);
    this.watch.note(name, state, revision);
  }

  private giveBack(run: QueuedRun, task: LiveTask): void {
    // Read now: the run may be taken up again before the key is written.
    const { ended, state, attempt } = run;
    if (ended) this.watch.forget(run.id);
    for (const name of keysOf(task, run)) {
      // In a back-off the task's own slot stays; one that goes on elsewhere keeps all.
      if (!ended && (state !== 'retrying' || name.kind !== 'concurrency')) continue;
      this.inBackground(run, name, async () => {
        const now = this.clock.now();
        const context = this.contextFor(run.id, now);
        const giveAndHandOn = (key: KeyState): KeyChange<Grant | null> => {
          const events = ended ? releaseKey(key, run.id) : releaseKey(key, run.id, attempt);
          return this.line.handOn(name, events, now);
        };
        const changed = await changeKey(this.store, name, context, giveAndHandOn, () =>
          this.watch.peek(name),
        );
        this.handing.begin(changed.answer);
        this.watch.note(name, changed.state, changed.revision);
        this.watch.wakeWaiting(name);
      });
    }
  }

  private inBackground(run: QueuedRun, name: KeyName, work: () => Promise<void>): void {
    this.errands.begin(this.errands.persist(run.id, name, work));
  }

  /** A run has ended without a worker of this process: canceled in the queue, or led by another. */
  private onEnded(run: QueuedRun): void {
    const waited = this.watch.isWaiting(run.id);
    // Who led it gives the key back; should he die before, whoever wants the key finds that it is over.
    if (run.state === 'running' && run.owner !== this.membership.id) {
      this.watch.forget(run.id);
      return;
    }
    const canceledInQueue = run.state !== 'running' && this.watch.isMine(run.id);
    if (!waited && !canceledInQueue) return;
    const { taskId, taskRevision } = run;
    const task = this.tasks.peek(taskId, taskRevision);
    if (task !== undefined) this.leave(run, task);
    else {
      // Its task was changed since: what the run has of which key stands in the one that it is pinned to.
      const leaves = async (): Promise<void> =>
        this.leave(run, await this.tasks.at(taskId, taskRevision));
      this.errands.begin(this.errands.persist(run.id, null, leaves));
    }
  }

  private leave(run: QueuedRun, task: LiveTask): void {
    if (isKeyed(task)) this.giveBack(run, task);
    else this.watch.forget(run.id);
  }

  private mended(name: KeyName, runs: readonly string[]): void {
    this.telemetry.count('scheduler_mended_total', { what: 'key_without_run' }, runs.length);
    this.telemetry.log.info('a key is taken back from runs that need it no more', {
      kind: name.kind,
      runs,
    });
  }

  private contextFor(correlationId: string, now: Instant): KeyContext {
    return { actor: 'service', source: this.membership.id, correlationId, now };
  }
}

function placesOfRun(state: KeyState, runId: string): readonly KeyPlace[] {
  return placesOf(state).filter(({ run_id }) => run_id === runId);
}

function changeBy({ outcome, events }: ReturnType<typeof holdKey>): KeyChange<typeof outcome> {
  return { events, answer: outcome };
}
