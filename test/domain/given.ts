import { expect } from 'chai';
import { toIso, type Instant } from '../../domain/clock.ts';
import { RefusalError, type RefusalCode } from '../../domain/errors.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import type { CommandContext, EventPlace, Fold } from '../../domain/handle.ts';

/** When the first event of a test happens. */
export const START: Instant = Date.parse('2026-03-02T08:00:00.000Z');

/** Where an event stands: at a revision, a second for each behind {@link START} where nothing is said. */
export function place(revision: number, at: Instant = START + revision * 1000): EventPlace {
  return {
    revision,
    metadata: {
      commandId: `command-${revision}`,
      $correlationId: 'correlation',
      actor: 'agent-1',
      source: 'test',
      schemaVersion: '1',
      occurredAt: toIso(at),
    },
  };
}

/** The state that events make. */
export function given<S, E extends DomainEvent>(fold: Fold<S, E>, events: readonly E[]): S {
  return events.reduce<S>(
    (state, event, index) => fold.evolve(state, event, place(index)),
    fold.initial,
  );
}

/** Checks that something is refused, and with what. */
export function refused(code: RefusalCode, decide: () => unknown): RefusalError {
  let outcome: unknown;
  try {
    decide();
  } catch (error) {
    outcome = error;
  }
  expect(outcome).to.be.instanceOf(RefusalError);
  const refusal = outcome as RefusalError;
  expect(refusal.code).to.equal(code);
  return refusal;
}

/** What a promise rejects with; fails when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    () => ({ error: null }),
    (error: unknown) => ({ error }),
  );
  expect(outcome.error, 'a rejection').to.not.equal(null);
  return outcome.error;
}

/** The context of a command. */
export function commandContext(
  commandId: string,
  now: Instant = START,
  more: Partial<CommandContext> = {},
): CommandContext {
  return {
    commandId,
    actor: 'agent-1',
    source: 'test',
    correlationId: 'correlation',
    now,
    ...more,
  };
}
