import type { RecordedEvent } from '../../domain/event-store.ts';

/**
 * Goes along with the stream of one key of limit 1 as the log tells it, event by event: who came to have the key and who
 * gave it back, from the kind of each event and the run that it names alone. The holders that an event lists are what
 * the code under test made of it, and are not looked at.
 */
export class UsesOfOneKey {
  /** How many runs have come to have the key. */
  uses = 0;
  /** The first thing that is wrong; null while nothing is. */
  fault: string | null = null;
  #holder: string | null = null;
  #revision = -1;

  /** The next event of the key; what comes after a fault is not looked at. */
  take(event: RecordedEvent): void {
    if (this.fault !== null) return;
    const { type, data, revision } = event;
    if (revision !== this.#revision + 1) {
      this.fault = `revision ${revision} comes after ${this.#revision}`;
      return;
    }
    this.#revision = revision;
    if (type === 'KeyHeld') {
      if (this.#holder !== null) {
        this.fault = `${data.run_id} takes the key while ${this.#holder} has it`;
      }
      this.#holder = data.run_id;
      this.uses += 1;
    } else if (type === 'KeyReleased') {
      if (this.#holder !== data.run_id) {
        this.fault = `${data.run_id} gives back the key, which ${this.#holder ?? 'nobody'} has`;
      }
      this.#holder = null;
    } else this.fault = `there is a ${type}`;
  }
}
