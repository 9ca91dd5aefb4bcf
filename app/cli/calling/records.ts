import type { Run, RunItem, Task } from '../../../api/client/client.ts';

// The service's responses, as far as the command line reads them; `docs/reference/http.md` has all of them.

/** A page of a list. */
export interface Listed<T> {
  readonly items: readonly T[];
  /** Undefined for lists whose length is not known, and null for a search. */
  readonly total?: number | null;
  readonly has_more?: boolean;
  readonly next_cursor: string | null;
}

export type TaskRecord = Task;
export type RunRecord = RunItem;
/** A run with its steps, log and output. */
export type RunDetails = Run;

/** The response of commands that return no record. */
export interface Done {
  readonly success: boolean;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>> & {
    /** Of `run_now?wait=`. */
    readonly run?: RunDetails | null;
  };
}
