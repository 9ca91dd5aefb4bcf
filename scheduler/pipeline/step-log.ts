import { toIso, type Cancel } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonValue } from '../../domain/json.ts';
import {
  jsonBytes,
  limitMembers,
  toPlainJson,
  truncateString,
  truncateTo,
} from '../../domain/pipeline/json-size.ts';
import type { Secrets } from '../../domain/pipeline/secrets.ts';
import type { Environment } from './execution.ts';

export type LogLine = StepEnd['log'][number];

/**
 * Limits of a step's log: its lines, the characters of a message, the bytes of a line's data, and of the whole log as
 * JSON.
 */
const MAX_LINES = 50;
const MAX_MESSAGE_LENGTH = 1000;
const MAX_DATA_BYTES = 2000;
const MAX_LOG_BYTES = 64 * 1024;

/** How long a line of a running step waits for others before it is recorded. Milliseconds. */
const RECORD_AFTER_MS = 500;

export interface StepLogOptions {
  /** The step, or the item of its `for_each`. */
  readonly step: string;
  readonly clock: Environment['clock'];
  readonly secrets: Secrets;
  /** Records lines while the step runs. @returns false if the run has no room for them */
  readonly record: (lines: readonly LogLine[]) => boolean;
}

/** The log of one step. The end of the step records the lines that are not recorded yet. */
export class StepLog {
  readonly #options: StepLogOptions;
  /** Lines that are not recorded yet. */
  #lines: LogLine[] = [];
  #count = 0;
  #cancelRecording: Cancel | null = null;
  #isLive = false;
  #isClosed = false;

  constructor(options: StepLogOptions) {
    this.#options = options;
  }

  readonly add = (level: string, message: string, data?: unknown): void => {
    if (this.#isClosed || this.#count > MAX_LINES) return;
    const { step, clock, secrets } = this.#options;
    const at = toIso(clock.now());
    this.#count += 1;
    if (this.#count > MAX_LINES) {
      const full = `the log of a step is limited to ${MAX_LINES} lines`;
      this.#push({ at, level: 'warn', message: full, step });
      return;
    }
    // Masked before it is cut, so that no part of a secret remains.
    const masked = truncateString(secrets.maskText(message), MAX_MESSAGE_LENGTH);
    const extra = data === undefined ? {} : { data: logData(secrets, data) };
    this.#push({ at, level, message: masked, step, ...extra });
  };

  /** Notes that its tool takes time. From now on, lines are recorded while it runs. */
  goLive(): void {
    this.#isLive = true;
    if (this.#lines.length > 0) this.#recordSoon();
  }

  /** Ends the log: later lines are ignored. @returns the lines that are not recorded */
  close(): readonly LogLine[] {
    this.#isClosed = true;
    this.#cancelRecording?.();
    return this.#lines;
  }

  #push(line: LogLine): void {
    this.#lines.push(line);
    if (this.#isLive) this.#recordSoon();
  }

  #recordSoon(): void {
    this.#cancelRecording ??= this.#options.clock.after(RECORD_AFTER_MS, () => this.#record());
  }

  #record(): void {
    this.#cancelRecording = null;
    if (this.#options.record(this.#lines)) this.#lines = [];
  }
}

/** Lines of a log within its limits. */
export interface BoundedLog {
  readonly lines: LogLine[];
  /** As JSON. */
  readonly bytes: number;
}

/**
 * Masks lines, and leaves out those that exceed the limit of a step's log.
 * @param used bytes of the step's earlier lines
 */
export function boundedLog(secrets: Secrets, log: readonly LogLine[], used = 0): BoundedLog {
  if (log.length === 0) return { lines: [], bytes: 0 };
  const lines: LogLine[] = [];
  let bytes = 0;
  for (const line of log) {
    const masked = secrets.mask(line) as LogLine;
    bytes += jsonBytes(masked);
    if (used + bytes > MAX_LOG_BYTES) break;
    lines.push(masked);
  }
  return { lines, bytes };
}

/** Replaces log lines that exceed the limit of the run. */
export function omittedLog([first]: readonly LogLine[]): BoundedLog {
  if (first === undefined) return { lines: [], bytes: 0 };
  const { at, step } = first;
  const lines = [
    { at, level: 'warn', message: 'log omitted: the run has reached its size limit', step },
  ];
  return { lines, bytes: jsonBytes(lines) };
}

/**
 * A masked and cut copy of a log line's data. It is a copy because the tool may change its object before it is
 * recorded.
 * @throws PipelineError when it is nested too deeply; Error when it is not JSON
 */
function logData(secrets: Secrets, data: unknown): JsonValue {
  const { value } = truncateTo(MAX_DATA_BYTES, toPlainJson(secrets.mask(limitMembers(data))));
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}
