import {
  traceSamplers,
  type TraceSampler,
  type TraceSettings,
} from '../../observability/trace-settings.ts';
import { quoted, settingOf, type Environment } from './setting-readers.ts';

/** The supported variables of OpenTelemetry; others are ignored. */
export const traceVariables = [
  'OTEL_SDK_DISABLED',
  'OTEL_TRACES_EXPORTER',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT',
  'OTEL_EXPORTER_OTLP_COMPRESSION',
  'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION',
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_KEY',
  'OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_PROPAGATORS',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_BSP_EXPORT_TIMEOUT',
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
] as const;
type TraceVariable = (typeof traceVariables)[number];

/** The parsed variables. */
interface TraceConfiguration {
  /** Null for no traces. */
  readonly traces: TraceSettings | null;
  /** Invalid values. They are no errors, because the variables are often set for many programs. */
  readonly warnings: readonly string[];
}

/**
 * Traces are on if `OTEL_TRACES_EXPORTER` is `otlp`, or if it is not set and an endpoint is; never with
 * `OTEL_SDK_DISABLED=true`. An invalid value causes a warning and counts as not set, as in OpenTelemetry's
 * specification.
 */
export function traceConfiguration(env: Environment): TraceConfiguration {
  const warnings: string[] = [];
  if (settingOf(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true')
    return { traces: null, warnings };
  const reader = new Reader(env, warnings);
  if (!isOn(env, reader)) return { traces: null, warnings };
  for (const name of [
    'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
    'OTEL_EXPORTER_OTLP_PROTOCOL',
  ] as const) {
    reader.oneOf(name, ['http/protobuf']);
  }
  const sampler: TraceSampler =
    reader.oneOf('OTEL_TRACES_SAMPLER', traceSamplers) ?? 'parentbased_always_on';
  const batch = reader.number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1, 100_000, 512);
  const traces = {
    sampler,
    ratio: sampler.endsWith('ratio') ? reader.number('OTEL_TRACES_SAMPLER_ARG', 0, 1, 1) : 1,
    propagates: propagates(env, reader),
    delay: reader.number('OTEL_BSP_SCHEDULE_DELAY', 1, 3_600_000, 5_000),
    timeout: reader.number('OTEL_BSP_EXPORT_TIMEOUT', 1, 3_600_000, 30_000),
    queue: Math.max(batch, reader.number('OTEL_BSP_MAX_QUEUE_SIZE', 1, 10_000_000, 2_048)),
    batch,
  };
  return { traces, warnings };
}

function isOn(env: Environment, reader: Reader): boolean {
  const exporter = reader.oneOf('OTEL_TRACES_EXPORTER', ['otlp', 'none']);
  if (exporter !== undefined) return exporter === 'otlp';
  // An unsupported exporter.
  if (settingOf(env, 'OTEL_TRACES_EXPORTER') !== undefined) return false;
  return (
    settingOf(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== undefined ||
    settingOf(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') !== undefined
  );
}

/** `baggage` is part of the default and ignored without a warning. */
function propagates(env: Environment, reader: Reader): boolean {
  const named = settingOf(env, 'OTEL_PROPAGATORS') ?? 'tracecontext,baggage';
  const all = named.split(',').map((each) => each.trim().toLowerCase());
  const unknown = all.find((each) => !['tracecontext', 'baggage', 'none', ''].includes(each));
  if (unknown !== undefined) {
    reader.warn('OTEL_PROPAGATORS', `names ${quoted(unknown)}, which is ignored`);
  }
  return all.includes('tracecontext') && !all.includes('none');
}

class Reader {
  readonly #env: Environment;
  readonly #warnings: string[];

  constructor(env: Environment, warnings: string[]) {
    this.#env = env;
    this.#warnings = warnings;
  }

  warn(name: TraceVariable, problem: string): void {
    this.#warnings.push(`${name} ${problem}`);
  }

  oneOf<T extends string>(name: TraceVariable, allowed: readonly T[]): T | undefined {
    const text = settingOf(this.#env, name);
    if (text === undefined) return undefined;
    const value = allowed.find((each) => each === text.toLowerCase());
    if (value === undefined) {
      this.warn(name, `is ${quoted(text)}, which is ignored; supported: ${allowed.join(', ')}`);
    }
    return value;
  }

  number(name: TraceVariable, from: number, to: number, otherwise: number): number {
    const text = settingOf(this.#env, name);
    if (text === undefined) return otherwise;
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= from && value <= to) return value;
    const allowed = `a number from ${String(from)} to ${String(to)}`;
    this.warn(name, `is ${quoted(text)}, which is ignored; it must be ${allowed}`);
    return otherwise;
  }
}
