import { fromIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { OperationsEvent } from '../events/catalogue.ts';
import type { EventStore } from '../event-store.ts';
import { handle, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import type { MisfirePolicy } from '../vocabulary.ts';

/** What operators have ordered of the whole service. */
export interface OperationsState {
  /** null while everything goes its way. */
  readonly hold: HoldOrder | null;
  /** The last release; null before the first. */
  readonly released: Release | null;
}

/** Nothing fires and no run starts. */
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
  /** What becomes of every fire that was due up to then; null: what its task says. */
  readonly missed: MisfirePolicy | null;
}

/** How the fires that a hold kept back are decided, in place of their tasks' own policies. */
export interface MissedOrder {
  readonly policy: MisfirePolicy;
  /** Nominal times up to here. */
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

/** What the last release says of the fires that were due before it; null: what their tasks say. */
export function missedOrder({ released }: OperationsState): MissedOrder | null {
  if (released === null || released.missed === null) return null;
  return { policy: released.missed, upTo: fromIso(released.at) };
}

/**
 * Holds the service: nothing fires, and no run starts, until it is released. Runs that are running go on.
 * @throws Refusal `STATE_CONFLICT` where it is on hold already
 */
export function holdCommand(
  store: EventStore,
  reason: string,
  context: CommandContext,
): Promise<Handled<OperationsState>> {
  return handle<OperationsState, OperationsEvent>({
    store,
    stream: streams.operations(),
    fold: operationsFold,
    context: { ...context, reason: context.reason ?? reason },
    decide({ hold }) {
      if (hold !== null) throw new Refusal('STATE_CONFLICT', 'it is on hold already', { ...hold });
      return [{ type: 'OperationsHeld', data: { reason } }];
    },
  });
}

/**
 * Ends a hold.
 * @param missed what becomes of the fires that were due up to now; null: what their tasks say
 * @throws Refusal `STATE_CONFLICT` where it is not on hold
 */
export function releaseCommand(
  store: EventStore,
  missed: MisfirePolicy | null,
  context: CommandContext,
): Promise<Handled<OperationsState>> {
  return handle<OperationsState, OperationsEvent>({
    store,
    stream: streams.operations(),
    fold: operationsFold,
    context,
    decide({ hold }) {
      if (hold === null) throw new Refusal('STATE_CONFLICT', 'it is not on hold');
      return [{ type: 'OperationsReleased', data: { missed } }];
    },
  });
}
