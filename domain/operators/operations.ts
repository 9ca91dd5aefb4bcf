import { fromIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { OperationsEvent } from '../events/catalogue.ts';
import type { EventStore } from '../event-store.ts';
import { handle, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import type { MisfirePolicy } from '../vocabulary.ts';

/** Orders for the whole service. */
export interface OperationsState {
  /** Null while the service is not on hold. */
  readonly hold: HoldOrder | null;
  /** The last release; null before the first. */
  readonly released: Release | null;
}

/** A hold, during which nothing fires and no run starts. */
export interface HoldOrder {
  readonly reason: string;
  /** The agent's id. */
  readonly by: string;
  /** ISO 8601. */
  readonly since: string;
}

/** The end of a hold. */
export interface Release {
  readonly by: string;
  /** ISO 8601. */
  readonly at: string;
  /** The policy for every fire that was due before; null: each task's own policy. */
  readonly missed: MisfirePolicy | null;
}

/** Replaces the misfire policies of tasks for the fires that a hold kept back. */
export interface MissedOrder {
  readonly policy: MisfirePolicy;
  /** The last nominal time that it applies to. */
  readonly upTo: Instant;
}

export const operationsFold: Fold<OperationsState, OperationsEvent> = {
  initial: { hold: null, released: null },
  evolve(state, event, { metadata }) {
    const { actor: by, occurredAt } = metadata;
    switch (event.type) {
      case 'OperationsHeld':
        return { ...state, hold: { reason: event.data.reason, by, since: occurredAt } };
      case 'OperationsReleased':
        return { hold: null, released: { by, at: occurredAt, missed: event.data.missed } };
    }
  },
};

/** The policy that the last release set for fires due before it; null: each task's own. */
export function missedOrder({ released }: OperationsState): MissedOrder | null {
  if (released === null || released.missed === null) return null;
  return { policy: released.missed, upTo: fromIso(released.at) };
}

/**
 * Holds the service: nothing fires and no run starts until it is released. Running runs continue.
 * @throws RefusalError `STATE_CONFLICT` if it is on hold already
 */
export function holdCommand(
  store: EventStore,
  reason: string,
  context: CommandContext,
): Promise<Handled<OperationsState>> {
  return onOperations(store, { ...context, reason: context.reason ?? reason }, ({ hold }) => {
    if (hold === null) return [{ type: 'OperationsHeld', data: { reason } }];
    throw new RefusalError('STATE_CONFLICT', 'the service is already on hold', { ...hold });
  });
}

/**
 * Ends a hold.
 * @param missed the policy for every fire due up to now; null: each task's own
 * @throws RefusalError `STATE_CONFLICT` if it is not on hold
 */
export function releaseCommand(
  store: EventStore,
  missed: MisfirePolicy | null,
  context: CommandContext,
): Promise<Handled<OperationsState>> {
  return onOperations(store, context, ({ hold }) => {
    if (hold !== null) return [{ type: 'OperationsReleased', data: { missed } }];
    throw new RefusalError('STATE_CONFLICT', 'the service is not on hold');
  });
}

function onOperations(
  store: EventStore,
  context: CommandContext,
  decide: (state: OperationsState) => readonly OperationsEvent[],
): Promise<Handled<OperationsState>> {
  return handle({ store, stream: streams.operations(), fold: operationsFold, context, decide });
}
