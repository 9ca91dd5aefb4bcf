import type { RecordedEvent } from '../../domain/event-store.ts';

/**
 * Follows one key of limit 1 through the log and checks that it has one holder at a time, from the type and run of each
 * event. The holders that an event lists come from the code under test and are ignored.
 */
export class KeyUseCheck {
  /** How often a run took the key. */
  uses = 0;
  /** The first violation; null for none. */
  violation: string | null = null;
  #holder: string | null = null;
  #revision = -1;

  /** Takes the next event; after a violation it does nothing. */
  take(event: RecordedEvent): void {
    if (this.violation !== null) return;
    const { type, data, revision } = event;
    if (revision !== this.#revision + 1) {
      this.violation = `revision ${revision} follows ${this.#revision}`;
      return;
    }
    this.#revision = revision;
    if (type === 'KeyHeld') {
      if (this.#holder !== null) {
        this.violation = `${data.run_id} takes the key while ${this.#holder} holds it`;
      }
      this.#holder = data.run_id;
      this.uses += 1;
    } else if (type === 'KeyReleased') {
      if (this.#holder !== data.run_id) {
        this.violation = `${data.run_id} releases the key of ${this.#holder ?? 'nobody'}`;
      }
      this.#holder = null;
    } else this.violation = `unexpected ${type}`;
  }
}
