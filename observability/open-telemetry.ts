import { hostname } from 'node:os';
import {
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  context,
  diag,
  trace,
  type Context,
  type Span as OtelSpan,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import { redactedText } from './redaction.ts';
import type { Log, Span, SpanAttributes, SpanOptions, Traces } from './telemetry.ts';
import type { TraceSettings } from './trace-settings.ts';

// Loaded only where traces are on: it is much code, and a process without traces has none of it.

/** What a process's traces go through. */
export interface ProcessTraces extends Traces {
  /** Sends what has ended, for at most {@link CLOSING} ms, and nothing more. Never rejects. */
  close(): Promise<void>;
}

/** How long the end of a process waits for a collector. Milliseconds. */
const CLOSING = 3_000;

/** The same complaint is logged once in so many milliseconds: a collector that is away is so for every batch. */
const SILENCE = 60_000;

/** Longest message of a span's status, in characters. */
const MOST_MESSAGE = 500;

const NAME = 'task-scheduling-service';

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/**
 * Makes the traces of a process, or of a thread of one. They are sent by OTLP over HTTP, as protobuf, to where the
 * environment says (`OTEL_EXPORTER_OTLP_…`), which also names the service (`OTEL_SERVICE_NAME`,
 * `OTEL_RESOURCE_ATTRIBUTES`). Code that uses OpenTelemetry's own API is heard as well: that of an extension, say.
 */
export function createTraces(
  settings: TraceSettings,
  options: { readonly version: string; readonly log: Log },
): ProcessTraces {
  const { version, log } = options;
  diag.setLogger(complaints(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const own = resourceFromAttributes({
    'service.name': NAME,
    'service.version': version,
    'service.instance.id': `${hostname()}:${String(process.pid)}`,
    'host.name': hostname(),
    'process.pid': process.pid,
  });
  const provider = new TracerProvider({
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings),
    spanLimits: { attributeValueLengthLimit: 4_096 },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        scheduledDelayMillis: settings.delay,
        exportTimeoutMillis: settings.timeout,
        maxQueueSize: settings.queue,
        maxExportBatchSize: settings.batch,
      }),
    ],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer(NAME, version);
  return new OpenTelemetry(tracer, settings.propagates, async () => {
    trace.disable();
    context.disable();
    await within(CLOSING, provider.shutdown(), log);
    diag.disable();
  });
}

class OpenTelemetry implements ProcessTraces {
  readonly close: () => Promise<void>;
  readonly propagates: boolean;
  readonly #tracer: Tracer;

  constructor(tracer: Tracer, propagates: boolean, close: () => Promise<void>) {
    this.#tracer = tracer;
    this.propagates = propagates;
    this.close = close;
  }

  begin(name: string, options: SpanOptions = {}): Span {
    const { kind = 'internal', attributes, links = [], parent } = options;
    // What comes by a header is the only parent of a server's span.
    const heeded = kind === 'server' && !this.propagates ? undefined : parent;
    const span = this.#tracer.startSpan(
      name,
      {
        kind: kinds[kind],
        ...(attributes === undefined ? {} : { attributes }),
        links: links.flatMap((link) => {
          const linked = spanContextOf(link);
          return linked === undefined ? [] : [{ context: linked }];
        }),
      },
      contextOf(heeded),
    );
    return new TracedSpan(span, this);
  }

  active(): Span | undefined {
    const span = trace.getActiveSpan();
    return span === undefined ? undefined : new TracedSpan(span, this);
  }
}

class TracedSpan implements Span {
  readonly span: OtelSpan;
  readonly #traces: OpenTelemetry;

  constructor(span: OtelSpan, traces: OpenTelemetry) {
    this.span = span;
    this.#traces = traces;
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.span.spanContext();
    return `00-${traceId}-${spanId}-0${String(traceFlags & 1)}`;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#traces.propagates ? { traceparent: this.traceparent } : {};
  }

  child(name: string, options: Omit<SpanOptions, 'parent'> = {}): Span {
    return this.#traces.begin(name, { ...options, parent: this });
  }

  rename(name: string): void {
    this.span.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    this.span.setAttributes(attributes);
  }

  fail(type: string, message?: string): void {
    const told = message === undefined ? {} : { message: messageOf(message) };
    this.span.setAttribute('error.type', type);
    this.span.setStatus({ code: SpanStatusCode.ERROR, ...told });
  }

  end(): void {
    this.span.end();
  }

  within<T>(call: () => T): T {
    return context.with(trace.setSpan(context.active(), this.span), call);
  }
}

const messageOf = (text: string): string => redactedText(text).slice(0, MOST_MESSAGE);

function contextOf(parent: Span | string | undefined): Context {
  if (parent instanceof TracedSpan) return trace.setSpan(ROOT_CONTEXT, parent.span);
  const remote = typeof parent === 'string' ? spanContextOf(parent) : undefined;
  return remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
}

/** `version-trace-span-flags`; a later version may have more behind it. Ids of zeros alone are none. */
const traceparent =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

function spanContextOf(text: string): SpanContext | undefined {
  const [, version, traceId, spanId, flags, more] = traceparent.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

function samplerOf({ sampler, ratio }: TraceSettings): Sampler {
  const root = rootSampler(sampler.replace(/^parentbased_/, ''), ratio);
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, ratio: number): Sampler {
  if (name === 'traceidratio') return new TraceIdRatioBasedSampler(ratio);
  return name === 'always_off' ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

/** What OpenTelemetry has to say of itself, as warnings: that traces get lost is no fault of the service. */
function complaints(log: Log): Parameters<typeof diag.setLogger>[0] {
  const told = new Map<string, number>();
  const say = (...said: readonly unknown[]): void => {
    const what = said.map(wordsOf).join(' ').slice(0, MOST_MESSAGE);
    const now = performance.now();
    const before = told.get(what);
    if (before !== undefined && now - before < SILENCE) return;
    if (told.size > 100) told.clear();
    told.set(what, now);
    log.warn('traces can not be sent as they should be', { what });
  };
  const ignore = (): void => {};
  return { error: say, warn: say, info: ignore, debug: ignore, verbose: ignore };
}

/** OpenTelemetry hands errors over as JSON, stack and all. */
function wordsOf(said: unknown): string {
  if (said instanceof Error) return said.message;
  const text = typeof said === 'string' ? said : (JSON.stringify(said) ?? '');
  if (!text.startsWith('{')) return text;
  try {
    const { name, message, code } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const words = [name, message, code].filter((each) => typeof each === 'string' && each !== '');
    return words.length === 0 ? text : words.join(' ');
  } catch {
    return text;
  }
}

/** @param limit milliseconds */
async function within(limit: number, closing: Promise<void>, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${String(limit / 1000)} s`), limit);
  });
  const ended = closing.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const fault = await Promise.race([ended, late]);
  clearTimeout(timer);
  if (fault !== null) log.warn('the last traces could not be sent', { what: fault });
}
