import { isArtifact } from '../../domain/artifacts/artifact.ts';
import type { Instant } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import {
  MAX_RESULT_BYTES,
  MAX_RUN_BYTES,
  jsonBytes,
  limitMembers,
  markerWithoutPreview,
  toPlainJson,
  truncateString,
  truncateTo,
  type Measured,
} from '../../domain/pipeline/json-size.ts';
import type { Secrets } from '../../domain/pipeline/secrets.ts';
import { boundedLog, omittedLog, type BoundedLog, type LogLine } from './step-log.ts';

/** The limits of a step's error in characters: normally, and once a run has used up MAX_RUN_BYTES. */
const MAX_ERROR_LENGTH = 4000;
const MAX_ERROR_LENGTH_IN_FULL_RUN = 250;

/** Smaller values are always kept, and their size is estimated, not measured. */
const SMALL_BYTES = 1024;

/** The most bytes of a run's artifacts. Without a limit, a `for_each` of 10,000 items could fill a disk. */
const MAX_ARTIFACT_BYTES = 1024 ** 3;

/** How a step ended, before masking and cutting. */
export interface Ending {
  readonly step: string;
  readonly status: StepEnd['status'];
  readonly result?: unknown;
  readonly error?: string;
  readonly startedAt: Instant;
  readonly log?: readonly LogLine[];
  /** Whether it evaluates expressions. */
  readonly readsScope: boolean;
}

/** The recorded part of a step's end. Sizes are bytes of JSON. */
export interface Kept {
  readonly result: Measured;
  readonly error: string | null;
  readonly log: BoundedLog;
}

/** Limits the records of a run about its steps: each value, and all values together. */
export class RunRoom {
  readonly #secrets: Secrets;
  /** The bytes of all ended steps. */
  #bytes = 0;
  #artifactBytes = 0;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  /** Counts the end of a step that is recorded. */
  addEnd({ result, error, log }: StepEnd): void {
    this.#bytes += jsonBytes([result, error, log]);
    this.addArtifact(result);
  }

  /** Counts the artifact that a result may refer to. */
  addArtifact(result: unknown): void {
    if (isArtifact(result)) this.#artifactBytes += result.size_bytes;
  }

  /** @returns whether there was room for the lines of a log */
  takeLog(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_RUN_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  /**
   * The end of a step, masked. Its result may have any size.
   * @param logged bytes of the log lines that were recorded while it ran
   * @throws Error for a result that is not JSON
   */
  measure({ result, error: told, log: lines = [] }: Ending, logged: number | undefined): Kept {
    const error =
      told === undefined ? null : truncateString(this.#secrets.maskText(told), MAX_ERROR_LENGTH);
    return { result: this.#plain(result), error, log: boundedLog(this.#secrets, lines, logged) };
  }

  /**
   * The size up to which the result stays in the log, if a larger one may become an artifact.
   * @returns null if it stays in the log, cut if necessary
   */
  limitOfLarge(kept: Kept): number | null {
    const limit = this.#hasRoom(kept) ? MAX_RESULT_BYTES : SMALL_BYTES;
    const { bytes } = kept.result;
    if (bytes <= limit || this.#artifactBytes + bytes > MAX_ARTIFACT_BYTES) return null;
    return limit;
  }

  /** Counts the end of a step. @returns the record of the end; its result is cut if necessary */
  take(kept: Kept): Kept {
    const isLarge = kept.result.bytes > MAX_RESULT_BYTES;
    const result = isLarge ? truncateTo(MAX_RESULT_BYTES, kept.result) : kept.result;
    const cut = this.#withinRoom(isLarge ? { ...kept, result } : kept);
    this.#bytes += sizeOf(cut);
    return cut;
  }

  #hasRoom(kept: Kept): boolean {
    const bytes = Math.min(kept.result.bytes, MAX_RESULT_BYTES) - kept.result.bytes + sizeOf(kept);
    return bytes <= SMALL_BYTES || this.#bytes + bytes <= MAX_RUN_BYTES;
  }

  /** Cut to a minimum once the run has reached MAX_RUN_BYTES. */
  #withinRoom(kept: Kept): Kept {
    if (this.#hasRoom(kept)) return kept;
    const { bytes } = kept.result;
    const result = bytes <= SMALL_BYTES ? kept.result : toPlainJson(markerWithoutPreview(bytes));
    const error =
      kept.error === null ? null : truncateString(kept.error, MAX_ERROR_LENGTH_IN_FULL_RUN);
    const log = kept.log.bytes <= SMALL_BYTES ? kept.log : omittedLog(kept.log.lines);
    return { result, error, log };
  }

  #plain(result: unknown): Measured {
    if (result === undefined) return { value: null, bytes: 4 };
    return exactly(toPlainJson(this.#secrets.mask(limitMembers(result))));
  }
}

/** An upper bound of the size in bytes of JSON. */
export const sizeOf = ({ result, log, error }: Kept): number =>
  result.bytes + log.bytes + (error?.length ?? 0) * 3;

/**
 * Long strings are measured, because their estimates are far too high. With those, they would be recorded one by one.
 */
function exactly(measured: Measured): Measured {
  if (measured.bytes <= SMALL_BYTES) return measured;
  return { value: measured.value, bytes: jsonBytes(measured.value) };
}
