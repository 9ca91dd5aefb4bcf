import { pino, stdTimeFunctions, type DestinationStream } from 'pino';
import { Metrics } from './metrics.ts';
import { redacted, redactedText } from './redaction.ts';
import type { Log, LogFields, Telemetry } from './telemetry.ts';

export interface TelemetryOptions {
  /** The least that is logged; `silent` logs nothing. */
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Fields of every line, such as the roles of the process. */
  readonly fields?: LogFields;
  /** Where lines go; standard output when left out. */
  readonly destination?: DestinationStream;
  /**
   * A metric that is not in the catalogue, or has other labels, throws. For tests; otherwise it is logged
   * once, so that a slip in counting never fails what is counted. Default false.
   */
  readonly strict?: boolean;
}

/** What listens behind the telemetry port. */
export interface ProcessTelemetry extends Telemetry {
  readonly metrics: Metrics;
}

/**
 * Makes the telemetry of a process: a log of one JSON object a line (`time`, `level`, `message`, then the
 * fields, without secrets), and its metrics. One of these a process.
 */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const log = createLog(options);
  const told = new Set<string>();
  const metrics = new Metrics({
    misuse: (message) => {
      if (options.strict === true) throw new Error(`Telemetry: ${message}`);
      if (told.has(message)) return;
      told.add(message);
      log.error('a metric was used wrongly', { what: message });
    },
  });
  return {
    log,
    metrics,
    count: (name, labels, by) => {
      metrics.count(name, labels, by);
    },
    observe: (name, value, labels) => {
      metrics.observe(name, value, labels);
    },
  };
}

type Level = keyof Log;

/** Names of pino's own that a field of the same name would otherwise appear beside, twice in one line. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'message']);

function createLog(options: TelemetryOptions): Log {
  const logger = pino(
    {
      level: options.level,
      base: fieldsOf(options.fields),
      messageKey: 'message',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? pino.destination({ fd: 1, sync: true }),
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
