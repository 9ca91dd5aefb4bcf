import type { Neighbourhood } from './neighbourhood.ts';
import type { Owner, Things } from './things.ts';

/** An agent with what it has. */
export interface Resident {
  readonly owner: Owner;
  readonly namespace: string;
  readonly things: Things;
  /** The names of the streams of its things. */
  readonly streams: readonly string[];
  /** Show that a text is about it: values of its things, and the names of their streams. */
  readonly marks: ReadonlySet<string>;
}

/** Two agents of different namespaces, of whom one looks for what the other has. */
export interface Pair {
  readonly place: Neighbourhood;
  readonly me: Resident;
  readonly other: Resident;
}
