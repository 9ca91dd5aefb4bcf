import type { Neighbourhood } from './neighbourhood.ts';
import type { Owner, Things } from './things.ts';

/** An agent with its things. */
export interface Resident {
  readonly owner: Owner;
  readonly namespace: string;
  readonly things: Things;
  /** The names of the streams of its things. */
  readonly streams: readonly string[];
  /**
   * Strings that show that a response is about it: values of its things, and the names of their
   * streams.
   */
  readonly marks: ReadonlySet<string>;
}

/** Two agents of different namespaces, one of which looks for the things of the other. */
export interface Pair {
  readonly place: Neighbourhood;
  readonly me: Resident;
  readonly other: Resident;
}
