import type { FillingStatus } from '../projector/projection-status.ts';
import type { GenerationFeeder } from './generation-feeder.ts';

/** The making of a generation from the log's beginning. */
export interface Making {
  /** What feeds the generation once it is filled, from where it is then. */
  readonly feeder: GenerationFeeder;

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with
   * false when the signal was aborted. A store that does not answer is waited for. May be called again after a rest.
   * @throws PoisonedFillError
   */
  run(signal: AbortSignal): Promise<boolean>;

  /** It is level with the generation that is read, and could take its place. */
  ready(): void;

  /** It will not become the live generation. */
  failed(detail: string): void;

  /** How far it is; what its order says stands beside it. */
  status(): FillingStatus;
}
