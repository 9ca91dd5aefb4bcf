import type { Telemetry, Traces } from '../../observability/telemetry.ts';
import type { TraceSettings } from '../../observability/trace-settings.ts';

export interface OpenTraces {
  readonly traces: Traces | undefined;
  /** Sends the remaining ones, for a few seconds at most. Never rejects. */
  close(): Promise<void>;
}

/** Opens the traces of a process or a thread. OpenTelemetry is loaded only if they are enabled. */
export async function openTraces(
  settings: TraceSettings | null,
  about: { readonly version: string } & Pick<Telemetry, 'log' | 'failures'>,
): Promise<OpenTraces> {
  if (settings === null) return { traces: undefined, close: async () => {} };
  const { createTraces } = await import('../../observability/open-telemetry.ts');
  const traces = createTraces(settings, about);
  return { traces, close: () => traces.close() };
}

/** Telemetry with these traces added. */
export function withTraces<T extends Telemetry>(telemetry: T, { traces }: OpenTraces): T {
  return traces === undefined ? telemetry : { ...telemetry, traces };
}
