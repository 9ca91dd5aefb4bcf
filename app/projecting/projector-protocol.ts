import type { Position } from '../../domain/event-store.ts';
import type { ServerProblemKind } from '../../domain/server-problem.ts';
import type { Labels } from '../../observability/telemetry.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { StoreSettings } from '../stores.ts';

/** Plain values, as the projector may run in a thread. */
export interface ProjectorThreadData {
  readonly settings: StoreSettings & Pick<Configuration, 'logLevel' | 'roles' | 'traces'>;
  readonly version: string;
  /** Owner of the projector's lease. */
  readonly owner: string;
  /** Milliseconds. */
  readonly lease: number;
}

/** From the parent to the projector's thread. */
export type ToProjectorThread = { readonly kind: 'stop' };

/** A server cannot be used, work failed because of that, or the server can be used again. */
export interface ProblemMessage {
  readonly kind: 'problem';
  readonly change: 'unusable' | 'met' | 'usable';
  readonly problem: PlainProblem;
  /** The problem that this one replaces. */
  readonly former?: PlainProblem | undefined;
}

/** A server's problem, without its cause. */
export interface PlainProblem {
  readonly kind: ServerProblemKind;
  readonly server: string;
  readonly message: string;
  readonly summary: string;
  readonly remedy: string;
}

/** Whether work succeeded that the whole process does, such as sending traces. */
export interface WorkMessage {
  readonly kind: 'work';
  readonly work: string;
  /** Why it failed; null after a success. */
  readonly error: string | null;
}

/** From the projector to its process. */
export type ProjectorMessage =
  | ProblemMessage
  | WorkMessage
  | { readonly kind: 'checkpoints'; readonly views: readonly (readonly [string, Position])[] }
  | {
      readonly kind: 'status';
      readonly leads: boolean;
      readonly views: readonly ProjectionStatus[];
    }
  | { readonly kind: 'count'; readonly name: string; readonly labels: Labels; readonly by: number }
  | {
      readonly kind: 'observe';
      readonly name: string;
      readonly labels: Labels;
      readonly value: number;
    };
