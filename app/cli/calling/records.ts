import type {
  Agent,
  Backfill,
  Run,
  RunItem,
  Task,
  TaskItem,
  WebhookDelivery,
} from '../../../api/client/client.ts';

// What the service answers, as far as the command line looks at it; `docs/reference/http.md` has all of it.

/** A list of tasks or runs. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

export type TaskRecord = Task;
/** A task in a list, where a large payload is left out. */
export type { TaskItem };
export type RunRecord = RunItem;
/** One run, with what only the run itself shows. */
export type RunDetails = Run;
export type AgentRecord = Agent;
export type BackfillRecord = Backfill;
/** What was sent to an agent's webhook, and what came of it. */
export type DeliveryRecord = WebhookDelivery;

/** What commands answer that return no record. */
export interface Done {
  readonly success: boolean;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>> & {
    /** Of `run_now?wait=`. */
    readonly run?: RunDetails | null;
  };
}
