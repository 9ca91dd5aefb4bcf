import type { AgentState } from '../../domain/agents/agent.ts';
import { ownerDenial, type Denial } from '../../domain/agents/permissions.ts';
import { fromIso, type Clock, type Instant } from '../../domain/clock.ts';
import { RefusalError } from '../../domain/errors.ts';
import { isConflict, type EventStore } from '../../domain/event-store.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import type { CommandContext, Loaded } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { cancelRunCommand, pauseForCauseCommand } from '../../domain/tasks/task-commands.ts';
import { unfinishedRunStates, type PauseCause } from '../../domain/vocabulary.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { LiveStreams } from '../../projections/reading/live-streams.ts';
import { loadView, type ReadableViews } from '../../projections/reading/load-view.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import type { DueIndex } from '../fires/due-index.ts';
import type { Leadership } from '../processes/leadership.ts';

/** The message that reports a failure. */
const FAILURE = 'could not stop the tasks or runs of an agent that lost its rights; retrying';

/**
 * The interval of checks of all owners, because a task may have been resumed just when its agent lost the right.
 * Milliseconds.
 */
const PASS_INTERVAL = 30_000;

/** Milliseconds before an agent is checked again if not all of its runs or tasks are stopped. */
const RETRY_AFTER = 1000;

/** How long the view may take to show the runs of an agent that was disabled. Milliseconds. */
const VIEW_TIMEOUT = 60_000;

/** The most commands at a time. Their appends become durable together. */
const MAX_CONCURRENT = 25;

interface EnforcementOptions {
  readonly store: EventStore;
  readonly readModel: ReadableViews;
  readonly agents: LiveStreams<AgentState, AgentEvent>;
  readonly index: DueIndex;
  readonly leadership: Pick<Leadership, 'leads' | 'onChange'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Name of this process, for the metadata. */
  readonly name: string;
}

/**
 * Enforces an agent's loss of rights. If an agent was removed or lacks the scope, its tasks are paused with that
 * reason. If an agent was disabled with `runs=cancel`, its runs are canceled.
 *
 * Safety does not depend on it, because schedulers and workers check before each fire, start and call. It derives
 * everything from the state of the agents, so the next leader can continue after a crash.
 */
export class OwnerEnforcement {
  readonly #options: EnforcementOptions;
  /** Agents to check; null stands for all. */
  readonly #due = new Set<string | null>([null]);
  /** Agents whose runs have been canceled, with the revision that ordered it. */
  readonly #canceled = new Map<string, number | 'none'>();
  #wake: () => void = () => {};

  constructor(options: EnforcementOptions) {
    this.#options = options;
    const look = (agentId: string | null): void => {
      this.#due.add(agentId);
      this.#wake();
    };
    options.agents.onChange(look);
    options.leadership.onChange(() => look(null));
  }

  /** Works while this process leads, until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, leadership, index, telemetry } = this.#options;
    let pause = 0;
    while (!signal.aborted) {
      if (leadership.leads && index.isCurrent && this.#due.size > 0) {
        const due = [...this.#due];
        this.#due.clear();
        const left = await this.#enforceAll(due, signal);
        for (const agentId of left) this.#due.add(agentId);
        pause = left.length > 0 ? RETRY_AFTER : PASS_INTERVAL;
        if (left.length === 0) telemetry.failures.worked(FAILURE);
      } else pause = leadership.leads && !index.isCurrent ? RETRY_AFTER : PASS_INTERVAL;
      const hasRested = await this.#rest(clock, pause, signal);
      if (hasRested && pause === PASS_INTERVAL) this.#due.add(null);
    }
  }

  /** @returns whether the pause has passed; false if there was work to do earlier */
  async #rest(clock: Clock, pause: number, signal: AbortSignal): Promise<boolean> {
    const stop = new AbortController();
    const end = (): void => stop.abort();
    this.#wake = end;
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      await clock.sleep(pause, stop.signal);
      return true;
    } catch {
      return false;
    } finally {
      this.#wake = () => {};
      signal.removeEventListener('abort', end);
    }
  }

  /** @returns agents that must be checked again */
  async #enforceAll(
    due: readonly (string | null)[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const owned = this.#tasksByOwner(due.includes(null) ? null : new Set(due));
    const left: string[] = [];
    for (const [agentId, tasks] of owned) {
      if (signal.aborted) return left;
      try {
        if (!(await this.#enforce(agentId, tasks))) left.push(agentId);
      } catch (error) {
        left.push(agentId);
        this.#options.telemetry.failures.failed(FAILURE, error, { agent: agentId });
      }
    }
    return left;
  }

  /** Ids of active tasks by agent, including agents without any. @param wanted agents; null: all */
  #tasksByOwner(wanted: ReadonlySet<string | null> | null): Map<string, string[]> {
    const owned = new Map<string, string[]>();
    for (const { taskId, state } of this.#options.index.all()) {
      const { created_by: owner } = state.definition;
      if (wanted !== null && !wanted.has(owner)) continue;
      const tasks = owned.get(owner) ?? [];
      owned.set(owner, tasks);
      if (state.status === 'active') tasks.push(taskId);
    }
    return owned;
  }

  /** @returns whether everything that must stop is stopped */
  async #enforce(agentId: string, tasks: readonly string[]): Promise<boolean> {
    const agent = await this.#options.agents.get(agentId);
    const { state } = agent;
    const denial = ownerDenial(agentId, state);
    if (denial !== null) {
      await mapInBatches(tasks, MAX_CONCURRENT, (taskId) => this.#pause(agentId, taskId, denial));
      return true;
    }
    const disabled = state.status === 'registered' ? state.disabled : null;
    if (disabled?.runs !== 'cancel') return true;
    return this.#cancelRuns(agentId, agent, fromIso(disabled.since));
  }

  async #pause(
    owner: string,
    taskId: string,
    { code: cause, why: reason }: Denial & { readonly code: PauseCause },
  ): Promise<void> {
    const { store, telemetry } = this.#options;
    const context = this.#context(taskId, reason);
    const { events } = await pauseForCauseCommand({ store, taskId, context, owner, cause });
    if (events.length === 0) return;
    telemetry.log.warn('task paused, its agent lost the right to it', { task: taskId, reason });
  }

  /**
   * Cancels the unfinished runs in the view. Workers cancel those that have not started.
   * @returns false if there may be others, because the view does not include the disabling yet
   */
  async #cancelRuns(
    agentId: string,
    disabled: Loaded<AgentState>,
    since: Instant,
  ): Promise<boolean> {
    if (this.#canceled.get(agentId) === disabled.revision) return true;
    const { store, readModel } = this.#options;
    const runs: string[] = [];
    const unfinished = [{ field: 'state', op: 'in', value: unfinishedRunStates }] as const;
    const passed = await loadView(
      { store, readModel },
      runsProjection,
      unfinished,
      ({ created_by, cancel_requested }, id) => {
        if (created_by === agentId && !cancel_requested) runs.push(id);
      },
    );
    await mapInBatches(runs, MAX_CONCURRENT, (id) => this.#cancel(id));
    if (disabled.position !== null && passed < disabled.position) {
      // If the view lags for long, the next pass reads it again.
      return this.#options.clock.now() - since > VIEW_TIMEOUT;
    }
    this.#canceled.set(agentId, disabled.revision);
    return true;
  }

  async #cancel(runId: string): Promise<void> {
    try {
      const context = this.#context(runId, 'its agent was disabled');
      await cancelRunCommand(this.#options.store, runId, context);
    } catch (error) {
      // It has ended in the meantime.
      if (!(error instanceof RefusalError) && !isConflict(error)) throw error;
    }
  }

  #context(correlationId: string, reason: string): CommandContext {
    const { clock, name: source } = this.#options;
    const now = clock.now();
    return { commandId: newId(now), actor: 'service', source, correlationId, reason, now };
  }
}
