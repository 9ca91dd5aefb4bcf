import { toIso } from '../../domain/clock.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import {
  jsonBytes,
  limitMembers,
  toPlainJson,
  truncateString,
  truncateTo,
} from '../../domain/pipeline/json-size.ts';
import type { Secrets } from '../../domain/pipeline/secrets.ts';

/**
 * Limits of a job's log: its lines, the characters of a message, the bytes of a line's data, and the bytes of one
 * append.
 */
export const MAX_LOG_LINES = 50;
const MAX_MESSAGE_LENGTH = 1000;
const MAX_DATA_BYTES = 2000;
const MAX_LOG_BYTES = 64 * 1024;

/** A line in the form that a worker sends. */
export interface SentLine {
  readonly level: string;
  readonly message: string;
  /** The time by the worker's clock; default: now. */
  readonly at?: string | undefined;
  readonly data?: unknown;
}

type LogLine = NonNullable<DataOf<'RunStepProgressed'>['log']>[number];

/**
 * A worker's lines, masked and cut. The line after the last that fits says that the limit is reached.
 * @param of.left how many lines the step may still have
 */
export function boundedLog(
  lines: readonly SentLine[],
  of: {
    readonly secrets: Secrets;
    readonly step: string;
    readonly now: string;
    readonly left: number;
  },
): LogLine[] {
  const { secrets, step, now, left } = of;
  const kept: LogLine[] = [];
  let bytes = 0;
  for (const { at, level, message, data } of lines) {
    if (kept.length > left) break;
    if (kept.length === left) {
      const full = `the log of a step is limited to ${MAX_LOG_LINES} lines`;
      kept.push({ at: now, level: 'warn', message: full, step });
      break;
    }
    const masked = truncateString(secrets.maskText(message), MAX_MESSAGE_LENGTH);
    const plain = data === undefined ? null : toPlainJson(secrets.mask(limitMembers(data)));
    const extra = plain === null ? {} : { data: truncateTo(MAX_DATA_BYTES, plain).value };
    const sentAt = at === undefined ? Number.NaN : Date.parse(at);
    const line = {
      at: Number.isNaN(sentAt) ? now : toIso(sentAt),
      level,
      message: masked,
      step,
      ...extra,
    };
    bytes += jsonBytes(line);
    if (bytes > MAX_LOG_BYTES) break;
    kept.push(line);
  }
  return kept;
}
