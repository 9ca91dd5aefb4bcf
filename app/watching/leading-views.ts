import type { Telemetry } from '../../observability/telemetry.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';

/** The views as this process's projector last reported them. Counts the events that it handled. */
export class LeadingViews {
  readonly #telemetry: Pick<Telemetry, 'count'>;
  #current: readonly ProjectionStatus[] | null = null;

  constructor(telemetry: Pick<Telemetry, 'count'>) {
    this.#telemetry = telemetry;
  }

  get current(): readonly ProjectionStatus[] | null {
    return this.#current;
  }

  /** @param views null: this process's projector no longer leads */
  update(views: readonly ProjectionStatus[] | null): void {
    const before = new Map(this.#current?.map(({ name, handled }) => [name, handled]));
    this.#current = views;
    for (const { name: projection, handled } of views ?? []) {
      const known = before.get(projection) ?? 0;
      // A new or reopened generation counts from 0.
      const more = handled < known ? handled : handled - known;
      this.#telemetry.count('projection_events_total', { projection }, more);
    }
  }
}
