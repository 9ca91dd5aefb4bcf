import type { TriggeringEvent } from '../../domain/events/catalogue.ts';
import { parseExpression, type Expression } from '../../domain/pipeline/expression.ts';
import { isFalsy } from '../../domain/pipeline/jmespath.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { BoundedCache } from '../../domain/schedule/bounded-cache.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { EventWait } from './open-event-waits.ts';

/** How long conditions may block the event loop at a time. Milliseconds. */
const PAUSE_AFTER_MS = 5;

/** How many parsed conditions are kept. */
const MAX_PARSED = 10_000;

/** Evaluates the conditions of waits for events. */
export class EventConditions {
  readonly #telemetry: Telemetry;
  readonly #parsed = new BoundedCache<Expression>(MAX_PARSED);
  /** Conditions whose failure was logged. */
  readonly #failed = new BoundedCache<true>(MAX_PARSED);

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  /** The waits whose condition is true. Each condition is evaluated once, with other work in between. */
  async met(event: TriggeringEvent, waits: readonly EventWait[]): Promise<readonly EventWait[]> {
    const known = new Map<string, boolean>();
    const met: EventWait[] = [];
    let pausedAt = performance.now();
    for (const wait of waits) {
      const { condition } = wait;
      let holds = condition === null || known.get(condition);
      if (holds === undefined && condition !== null) {
        holds = this.holds(condition, event, wait);
        known.set(condition, holds);
        if (performance.now() - pausedAt >= PAUSE_AFTER_MS) {
          await new Promise<void>((resolve) => setImmediate(resolve));
          pausedAt = performance.now();
        }
      }
      if (holds === true) met.push(wait);
    }
    return met;
  }

  /** Whether a condition is true. If its evaluation fails, the wait continues. */
  holds(condition: string, event: TriggeringEvent, { runId }: Pick<EventWait, 'runId'>): boolean {
    try {
      const expression = this.#parsed.get(condition, () => parseExpression(condition));
      return !isFalsy(expression.evaluate({ event }));
    } catch (error) {
      if (!(error instanceof PipelineError)) throw error;
      this.#failed.get(condition, () => {
        const message = 'the condition of a wait failed for an event; the wait continues';
        this.#telemetry.failures.failed(message, error, { run: runId, event: event.id });
        return true;
      });
      return false;
    }
  }
}
