import {
  traceSamplers,
  type TraceSampler,
  type TraceSettings,
} from '../../observability/trace-settings.ts';
import { shown, textOf, type Environment } from './setting-readers.ts';

/** The variables of OpenTelemetry that count here; others are not looked at. */
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

/** What the variables of OpenTelemetry come to. */
export interface TraceConfiguration {
  /** null: no traces. */
  readonly traces: TraceSettings | null;
  /** What is set and can't be heeded, a line each. Such variables are often set for many programs at once. */
  readonly warnings: readonly string[];
}

/**
 * Traces are on where `OTEL_TRACES_EXPORTER` is `otlp`, or where it is not set and an endpoint is; never with
 * `OTEL_SDK_DISABLED=true`. A bad value stops nothing: it is warned of, and counts as not set, as OpenTelemetry's
 * specification wants it.
 */
export function traceConfiguration(env: Environment): TraceConfiguration {
  const warnings: string[] = [];
  if (textOf(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return { traces: null, warnings };
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
  // What it names is not to be had here: nobody has asked for another.
  if (textOf(env, 'OTEL_TRACES_EXPORTER') !== undefined) return false;
  return (
    textOf(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== undefined ||
    textOf(env, 'OTEL_EXPORTER_OTLP_ENDPOINT') !== undefined
  );
}

/** `baggage` is let pass without a word, since it stands in the default: nothing here makes use of any. */
function propagates(env: Environment, reader: Reader): boolean {
  const named = textOf(env, 'OTEL_PROPAGATORS') ?? 'tracecontext,baggage';
  const all = named.split(',').map((each) => each.trim().toLowerCase());
  const unknown = all.find((each) => !['tracecontext', 'baggage', 'none', ''].includes(each));
  if (unknown !== undefined) {
    reader.warn('OTEL_PROPAGATORS', `names ${shown(unknown)}, which is not heeded`);
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

  warn(name: TraceVariable, fault: string): void {
    this.#warnings.push(`${name} ${fault}`);
  }

  oneOf<T extends string>(name: TraceVariable, allowed: readonly T[]): T | undefined {
    const text = textOf(this.#env, name);
    if (text === undefined) return undefined;
    const value = allowed.find((each) => each === text.toLowerCase());
    if (value === undefined) {
      this.warn(name, `is ${shown(text)}, which is not heeded; known here: ${allowed.join(', ')}`);
    }
    return value;
  }

  number(name: TraceVariable, from: number, to: number, otherwise: number): number {
    const text = textOf(this.#env, name);
    if (text === undefined) return otherwise;
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (value >= from && value <= to) return value;
    const allowed = `a number from ${String(from)} to ${String(to)}`;
    this.warn(name, `is ${shown(text)}, which is not heeded; it must be ${allowed}`);
    return otherwise;
  }
}
