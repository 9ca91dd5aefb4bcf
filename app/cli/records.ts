import type { JsonObject } from '../../domain/json.ts';
import type { TaskDefinition } from '../../domain/task-definition.ts';
import type { RunState, RunTrigger, TaskStatus } from '../../domain/vocabulary.ts';

// What the service answers, as far as the command line looks at it; `docs/http.md` has all of it.

export interface TokenAnswer {
  readonly access_token: string;
}

/** A list of tasks or runs. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

export type TaskRecord = TaskDefinition & {
  readonly id: string;
  readonly status: TaskStatus;
  readonly created_at: string;
  readonly updated_at: string;
  readonly next_run_at: string | null;
  readonly last_run_at: string | null;
  readonly exhausted: boolean;
  readonly revision: number;
  readonly warnings: readonly string[];
};

export interface RunRecord {
  readonly id: string;
  readonly task_id: string;
  readonly state: RunState;
  readonly trigger: RunTrigger;
  readonly success: boolean | null;
  readonly attempt: number;
  readonly error: string | null;
  readonly skip_reason: string | null;
  readonly scheduled_for: string | null;
  readonly run_at: string | null;
  readonly queued_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly priority: number;
  readonly retry_of: string | null;
  readonly output: JsonObject | null;
}

/** One run, with what only the run itself shows. */
export type RunDetails = RunRecord & {
  readonly attempts: readonly {
    readonly attempt: number;
    readonly worker: string;
    readonly started_at: string;
    readonly finished_at: string | null;
    readonly outcome: string | null;
    readonly error: string | null;
  }[];
  readonly steps: readonly {
    readonly step: string;
    readonly status: string;
    readonly error: string | null;
    readonly started_at: string;
    readonly finished_at: string | null;
    readonly attempt: number;
  }[];
  readonly log: readonly {
    readonly at: string;
    readonly level: string;
    readonly message: string;
    readonly step: string;
  }[];
};

export interface AgentRecord {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly webhook_url: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What commands answer that return no record. */
export interface Done {
  readonly success: boolean;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>> & {
    /** Of `run_now?wait=`. */
    readonly run?: RunDetails | null;
  };
}
