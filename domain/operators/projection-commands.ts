import { Refusal } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { ProjectionEvent } from '../events/catalogue.ts';
import { handle, type CommandContext, type Handled } from '../handle.ts';
import {
  projectionOrdersFold,
  rebuildUnderWay,
  type ProjectionOrders,
  type RebuildOrder,
} from './projection-orders.ts';
import { streams } from '../streams.ts';
import type { ParkedOrder, RebuildSwitch } from '../vocabulary.ts';

/** Which view, in which shape, is ordered something, and by whom. */
export interface ProjectionCommand {
  readonly store: EventStore;
  readonly name: string;
  /** The shape in the code. */
  readonly schema: number;
  readonly context: CommandContext;
}

/** Which version of a view somebody has seen to be live, and how that stands to the orders. */
export interface SeenVersion {
  /** What the caller takes to be live; 0 for none. */
  readonly expected: number;
  /** What was live when the command began, by the read model. */
  readonly found: number;
  /** `live` of the orders by which that was found: after another switch they alone say what is live. */
  readonly switched: number | null;
}

/** Appends what is decided on the orders as they stand. */
export function orderOf(
  { store, name, schema, context }: ProjectionCommand,
  decide: (orders: ProjectionOrders) => readonly ProjectionEvent[],
): Promise<Handled<ProjectionOrders>> {
  const fold = projectionOrdersFold(schema);
  return handle<ProjectionOrders, ProjectionEvent>({
    store,
    stream: streams.projection(name),
    fold,
    decide,
    context,
  });
}

/**
 * Orders the next generation of a view.
 *
 * @param ask.known the largest generation that there is
 * @throws Refusal `STATE_CONFLICT` while one is under way
 */
export function rebuildCommand(
  command: ProjectionCommand,
  ask: {
    readonly rate: number | null;
    readonly switch: RebuildSwitch;
    readonly known: number;
  },
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, (orders) => {
    const underWay = rebuildUnderWay(orders);
    if (underWay !== null) {
      const { version } = underWay;
      throw new Refusal('STATE_CONFLICT', `a rebuild is under way (version ${version})`, {
        version,
      });
    }
    const version = Math.max(orders.lastVersion, ask.known) + 1;
    const { rate, switch: how } = ask;
    const data = { schema: command.schema, version, rate, switch: how };
    return [{ type: 'ProjectionRebuildRequested', data }];
  });
}

/** Lets a rebuild rest where it is. @throws Refusal `STATE_CONFLICT` where none goes on */
export function pauseRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, (orders) => {
    const { version, paused } = requireRebuild(orders);
    if (paused) throw new Refusal('STATE_CONFLICT', 'the rebuild rests already', { version });
    const { schema } = command;
    return [{ type: 'ProjectionRebuildPaused', data: { schema, version } }];
  });
}

/** Lets a rebuild go on. @throws Refusal `STATE_CONFLICT` where none rests */
export function resumeRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, (orders) => {
    const { version, paused } = requireRebuild(orders);
    if (!paused) throw new Refusal('STATE_CONFLICT', 'the rebuild goes on', { version });
    const { schema } = command;
    return [{ type: 'ProjectionRebuildResumed', data: { schema, version } }];
  });
}

/** Throws the generation in the making away. @throws Refusal `STATE_CONFLICT` where there is none */
export function cancelRebuildCommand(
  command: ProjectionCommand,
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, ({ rebuild }) => {
    if (rebuild === null) throw new Refusal('STATE_CONFLICT', 'no rebuild is under way');
    const { schema } = command;
    return [{ type: 'ProjectionRebuildCanceled', data: { schema, version: rebuild.version } }];
  });
}

/**
 * Lets reads go to a generation that waits for it.
 *
 * @param seen what the caller expects to be live; default: whatever is
 * @throws Refusal `REVISION_MISMATCH` where another version is live; `STATE_CONFLICT` where no generation waits
 */
export function switchCommand(
  command: ProjectionCommand,
  seen?: SeenVersion,
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, (orders) => {
    requireLive(command.name, orders, seen);
    const { version, ready, paused } = requireRebuild(orders);
    if (!ready || paused) {
      const message = paused ? 'the rebuild rests' : 'the rebuild is not level yet';
      throw new Refusal('STATE_CONFLICT', message, { version });
    }
    const { schema } = command;
    return [{ type: 'ProjectionSwitchRequested', data: { schema, version } }];
  });
}

/**
 * Lets reads go back to the generation before.
 *
 * @param seen what the caller expects to be live; default: whatever is. Without it a second order rolls back the first
 * @throws Refusal `REVISION_MISMATCH` where another version is live; `STATE_CONFLICT` where none before is kept
 */
export function rollbackCommand(
  command: ProjectionCommand,
  seen?: SeenVersion,
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, (orders) => {
    requireLive(command.name, orders, seen);
    const { previous } = orders;
    const underWay = rebuildUnderWay(orders);
    if (underWay !== null) {
      const message = 'a rebuild is under way; cancel it first';
      throw new Refusal('STATE_CONFLICT', message, { version: underWay.version });
    }
    if (previous === null || previous.until <= command.context.now) {
      throw new Refusal('STATE_CONFLICT', 'no generation before is kept');
    }
    const { schema } = command;
    return [{ type: 'ProjectionSwitchRequested', data: { schema, version: previous.version } }];
  });
}

/** Orders what is to become of a key that is held back; the caller has seen that it is. */
export function parkedKeyCommand(
  command: ProjectionCommand,
  ask: { readonly version: number; readonly key: string; readonly order: ParkedOrder },
): Promise<Handled<ProjectionOrders>> {
  return orderOf(command, () => {
    return [{ type: 'ParkedKeyOrdered', data: { schema: command.schema, ...ask } }];
  });
}

function requireLive(
  name: string,
  { live }: ProjectionOrders,
  seen: SeenVersion | undefined,
): void {
  if (seen === undefined) return;
  const { expected, found, switched } = seen;
  const actual = live === switched ? found : (live ?? 0);
  if (actual === expected) return;
  const message = `version ${actual} of ${name} is live, not ${expected}`;
  throw new Refusal('REVISION_MISMATCH', message, { expected, actual });
}

function requireRebuild(orders: ProjectionOrders): RebuildOrder {
  const underWay = rebuildUnderWay(orders);
  if (underWay === null) throw new Refusal('STATE_CONFLICT', 'no rebuild is under way');
  return underWay;
}
