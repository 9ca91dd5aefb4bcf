import { pino, stdTimeFunctions, type DestinationStream } from 'pino';
import { LineFile } from './line-file.ts';
import { redacted, redactedText } from './redaction.ts';
import type { Log, LogFields } from './telemetry.ts';

export interface LogOptions {
  /** The least that is logged; `silent` logs nothing. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Fields of every line, such as the roles of the process. */
  readonly fields?: LogFields;
  /** Where lines go, in place of a file. */
  readonly destination?: DestinationStream;
  /** An open file that lines go to; standard output when left out. */
  readonly fd?: number;
}

type Level = keyof Log;

/** Names of pino's own that a field of the same name would otherwise appear beside, twice in one line. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'message']);

/**
 * Makes a log of one JSON object a line: `time`, `level`, `message`, then the fields, without secrets. For what
 * has no metrics of its own, such as a thread; a process has {@link createTelemetry}.
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
      new LineFile(options.fd ?? 1, (lost) => logger.warn({ lost }, 'lines of the log were lost')),
  );
  const at =
    (level: Level) =>
    (message: string, fields?: LogFields): void => {
      // Looking at the fields costs more than not logging: ask first.
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
