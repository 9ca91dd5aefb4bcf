import { expect } from 'chai';
import { toIso, type Instant } from '../../domain/clock.ts';
import { RefusalError, type RefusalCode } from '../../domain/errors.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import type { CommandContext, EventPlace, Fold } from '../../domain/handle.ts';

/** The time of a test's first event. */
export const START: Instant = Date.parse('2026-03-02T08:00:00.000Z');

/** The revision and the time of an event. Default: one second after {@link START} per revision. */
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

/** The state that results from events. */
export function given<S, E extends DomainEvent>(fold: Fold<S, E>, events: readonly E[]): S {
  return events.reduce<S>(
    (state, event, index) => fold.evolve(state, event, place(index)),
    fold.initial,
  );
}

/** Expects that a decision is refused with a code. @returns the refusal */
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

/** The error with which a promise rejects. Fails if it does not reject. */
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
