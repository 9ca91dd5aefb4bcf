import { pino, stdTimeFunctions, type DestinationStream } from 'pino';
import { LineFile } from './line-file.ts';
import { redacted, redactedText } from './redaction.ts';
import type { Log, LogFields } from './telemetry.ts';

export interface LogOptions {
  /** Minimum level; `silent` logs nothing. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Fields of every line, such as the roles of the process. */
  readonly fields?: LogFields;
  /** Destination of lines, instead of a file. */
  readonly destination?: DestinationStream;
  /** An open file descriptor. Default: standard output. */
  readonly fd?: number;
}

type Level = keyof Log;

/** pino's own field names. A field with such a name would appear twice in a line. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'message']);

/**
 * Creates a log with one JSON object per line: `time`, `level`, `message`, then the fields, without secrets. For threads,
 * which have no metrics of their own. Processes use {@link createTelemetry}.
 */
export function createLog(options: LogOptions): Log {
  const logger = pino(
    {
      level: options.level,
      base: fieldsOf(options.fields),
      messageKey: 'message',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ??
      new LineFile(options.fd ?? 1, (lost) => logger.warn({ lost }, 'log lines lost')),
  );
  const at =
    (level: Level) =>
    (message: string, fields?: LogFields): void => {
      // Redacting the fields costs more than this check.
      if (logger.isLevelEnabled(level)) logger[level](fieldsOf(fields), redactedText(message));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function fieldsOf(fields: LogFields = {}): Record<string, unknown> {
  const clean = redacted(fields) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(clean).map(([name, value]) => [reserved.has(name) ? `${name}_` : name, value]),
  );
}
