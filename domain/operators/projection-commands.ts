import { RefusalError } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { ProjectionEvent } from '../events/catalogue.ts';
import { handle, type CommandContext, type Handled } from '../handle.ts';
import {
  projectionOrdersFold,
  runningRebuild,
  type ProjectionOrders,
  type RebuildOrder,
} from './projection-orders.ts';
import { streams } from '../streams.ts';
import type { ParkedOrder, RebuildSwitch } from '../vocabulary.ts';

/** An order for a view, under one schema version. */
export interface ProjectionCommand {
  readonly store: EventStore;
  readonly name: string;
  /** The schema version of this release. */
  readonly schema: number;
  readonly context: CommandContext;
}

/** The version of a view that the caller believes is live, and the facts to check that. */
export interface SeenVersion {
  /** The version that the caller expects; 0 for none. */
  readonly expected: number;
  /** The live generation in the read model when the command started. */
  readonly found: number;
  /** `live` of the orders read at that time. After a later switch, only the orders say which generation is live. */
  readonly switched: number | null;
}

/** Appends the events that are decided on the present orders. */
export function appendOrder(
  { store, name, schema, context }: ProjectionCommand,
  decide: (orders: ProjectionOrders) => readonly ProjectionEvent[],
): Promise<Handled<ProjectionOrders>> {
  const fold = projectionOrdersFold(schema);
  return handle({ store, stream: streams.projection(name), fold, decide, context });
}

/**
 * Orders the next generation of a view.
 * @param ask.known the highest generation that exists
 * @throws RefusalError `STATE_CONFLICT` while a rebuild is running
 */
export function rebuildCommand(
  command: ProjectionCommand,
  ask: {
    readonly rate: number | null;
    readonly switch: RebuildSwitch;
    readonly known: number;
  },
): Promise<Handled<ProjectionOrders>> {
  return appendOrder(command, (orders) => {
    const running = runningRebuild(orders);
    if (running !== null) {
      const { version } = running;
      throw conflict(`a rebuild is running (version ${version})`, { version });
    }
    const version = Math.max(orders.lastVersion, ask.known) + 1;
    const data = { schema: command.schema, version, rate: ask.rate, switch: ask.switch };
    return [{ type: 'ProjectionRebuildRequested', data }];
  });
}

/** Pauses a rebuild. @throws RefusalError `STATE_CONFLICT` if no rebuild is running, or if it is paused */
export function pauseRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return onRebuild(command, ({ version, paused }, data) => {
    if (paused) throw conflict('the rebuild is already paused', { version });
    return { type: 'ProjectionRebuildPaused', data };
  });
}

/** Resumes a rebuild. @throws RefusalError `STATE_CONFLICT` if no rebuild is paused */
export function resumeRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return onRebuild(command, ({ version, paused }, data) => {
    if (!paused) throw conflict('the rebuild is not paused', { version });
    return { type: 'ProjectionRebuildResumed', data };
  });
}

/**
 * Cancels a rebuild, even a failed one, and deletes its generation.
 * @throws RefusalError `STATE_CONFLICT` if there is no rebuild
 */
export function cancelRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return appendOrder(command, ({ rebuild }) => {
    if (rebuild === null) throw conflict('no rebuild is running');
    const data = { schema: command.schema, version: rebuild.version };
    return [{ type: 'ProjectionRebuildCanceled', data }];
  });
}

/**
 * Switches reads to a generation that is ready.
 * @param seen the version that the caller expects to be live; default: any
 * @throws RefusalError `REVISION_MISMATCH` if another version is live; `STATE_CONFLICT` if no generation is ready
 */
export function switchCommand(
  command: ProjectionCommand,
  seen?: SeenVersion,
): Promise<Handled<ProjectionOrders>> {
  return onRebuild(
    command,
    ({ version, ready, paused }, data) => {
      if (paused) throw conflict('the rebuild is paused', { version });
      if (!ready) throw conflict('the rebuild has not caught up yet', { version });
      return { type: 'ProjectionSwitchRequested', data };
    },
    seen,
  );
}

/**
 * Switches reads back to the previous generation.
 * @param seen the version that the caller expects to be live; default: any. Without it, repeating the command
 *   reverts it
 * @throws RefusalError `REVISION_MISMATCH` if another version is live; `STATE_CONFLICT` if no previous generation is
 *   kept
 */
export function rollbackCommand(
  command: ProjectionCommand,
  seen?: SeenVersion,
): Promise<Handled<ProjectionOrders>> {
  return appendOrder(command, (orders) => {
    requireLive(command.name, orders, seen);
    const { previous } = orders;
    const running = runningRebuild(orders);
    if (running !== null) {
      throw conflict('a rebuild is running; cancel it first', { version: running.version });
    }
    if (previous === null || previous.until <= command.context.now) {
      throw conflict('no previous generation is kept');
    }
    const data = { schema: command.schema, version: previous.version };
    return [{ type: 'ProjectionSwitchRequested', data }];
  });
}

/** Orders that a parked key's event be folded again or skipped. The caller has checked that the key is parked. */
export function parkedKeyCommand(
  command: ProjectionCommand,
  ask: { readonly version: number; readonly key: string; readonly order: ParkedOrder },
): Promise<Handled<ProjectionOrders>> {
  const { schema } = command;
  return appendOrder(command, () => [{ type: 'ParkedKeyOrdered', data: { schema, ...ask } }]);
}

/** Decides on the running rebuild. */
function onRebuild(
  command: ProjectionCommand,
  decide: (rebuild: RebuildOrder, data: { schema: number; version: number }) => ProjectionEvent,
  seen?: SeenVersion,
): Promise<Handled<ProjectionOrders>> {
  return appendOrder(command, (orders) => {
    requireLive(command.name, orders, seen);
    const running = runningRebuild(orders);
    if (running === null) throw conflict('no rebuild is running');
    return [decide(running, { schema: command.schema, version: running.version })];
  });
}

function requireLive(name: string, { live }: ProjectionOrders, seen?: SeenVersion): void {
  if (seen === undefined) return;
  const { expected, found, switched } = seen;
  const actual = live === switched ? found : (live ?? 0);
  if (actual === expected) return;
  const message = `version ${actual} of ${name} is live, not ${expected}`;
  throw new RefusalError('REVISION_MISMATCH', message, { expected, actual });
}

const conflict = (message: string, details: Record<string, unknown> = {}): RefusalError =>
  new RefusalError('STATE_CONFLICT', message, details);
