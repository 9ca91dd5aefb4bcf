/** Trace settings. The exporter itself reads the collector's address from the environment. */
export interface TraceSettings {
  /** `OTEL_TRACES_SAMPLER` */
  readonly sampler: TraceSampler;
  /** `OTEL_TRACES_SAMPLER_ARG`: share of kept traces, from 0 to 1. */
  readonly ratio: number;
  /** `OTEL_PROPAGATORS` includes `tracecontext`: accept and forward `traceparent`. */
  readonly propagates: boolean;
  /** `OTEL_BSP_SCHEDULE_DELAY`: milliseconds between exports. */
  readonly delay: number;
  /** `OTEL_BSP_EXPORT_TIMEOUT`: timeout of an export, in milliseconds. */
  readonly timeout: number;
  /** `OTEL_BSP_MAX_QUEUE_SIZE`: maximum waiting spans. More are dropped. */
  readonly queue: number;
  /** `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: maximum spans of an export. */
  readonly batch: number;
}

/** Samplers. The `parentbased_` ones follow the decision of the trace's origin, if known. */
export const traceSamplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type TraceSampler = (typeof traceSamplers)[number];
