/** How traces are made and sent. Where they go to, the exporter reads from the environment itself. */
export interface TraceSettings {
  /** `OTEL_TRACES_SAMPLER` */
  readonly sampler: TraceSampler;
  /** `OTEL_TRACES_SAMPLER_ARG`: the share of traces that are kept, from 0 to 1. */
  readonly ratio: number;
  /** `OTEL_PROPAGATORS` has `tracecontext`: a request's `traceparent` is heeded, and sent on. */
  readonly propagates: boolean;
  /** `OTEL_BSP_SCHEDULE_DELAY`: milliseconds between two sendings. */
  readonly delay: number;
  /** `OTEL_BSP_EXPORT_TIMEOUT`: milliseconds that a sending may take. */
  readonly timeout: number;
  /** `OTEL_BSP_MAX_QUEUE_SIZE`: spans that wait; what comes on top is dropped. */
  readonly queue: number;
  /** `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`: spans of one sending. */
  readonly batch: number;
}

/** Which traces are kept; the `parentbased_` ones leave it to whoever began the trace, where that is known. */
export const traceSamplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type TraceSampler = (typeof traceSamplers)[number];
