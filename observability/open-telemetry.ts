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
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import { redactedText } from './redaction.ts';
import type {
  Failures,
  Log,
  Span,
  SpanAttributes,
  SpanOptions,
  Telemetry,
  Traces,
} from './telemetry.ts';
import type { TraceSettings } from './trace-settings.ts';

// A large dependency, loaded only with traces on.

/** The traces of a process. */
export interface ProcessTraces extends Traces {
  /** Sends ended spans for at most {@link CLOSING} ms, then stops. Never rejects. */
  close(): Promise<void>;
}

/** How long an ending process waits for the collector. Milliseconds. */
const CLOSING = 3_000;

/** The message that reports failed exports. */
const NOT_SENT = 'could not send traces';

/** Maximum number of OpenTelemetry's warnings that have lines of their own. Some quote the names of attributes. */
const MAX_WARNINGS = 50;

/** The code of a successful export, as in `ExportResultCode` of OpenTelemetry's core. */
const EXPORTED = 0;

/** Maximum length of a span's status message. Characters. */
const MAX_MESSAGE_LENGTH = 500;

const NAME = 'task-scheduling-service';

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/**
 * Creates the traces of a process or thread. They are sent by OTLP over HTTP, as protobuf. The environment names the
 * collector (`OTEL_EXPORTER_OTLP_…`) and the service (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`). Spans made with
 * OpenTelemetry's own API, for example by an extension, are included.
 */
export function createTraces(
  settings: TraceSettings,
  options: { readonly version: string } & Pick<Telemetry, 'log' | 'failures'>,
): ProcessTraces {
  const { version, log, failures } = options;
  diag.setLogger(complaints(failures), {
    logLevel: DiagLogLevel.WARN,
    suppressOverrideMessage: true,
  });
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
        exporter: reportingSuccess(new OTLPTraceExporter(), failures),
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
    // A server span's parent always comes from a header.
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

const messageOf = (text: string): string => redactedText(text).slice(0, MAX_MESSAGE_LENGTH);

function contextOf(parent: Span | string | undefined): Context {
  if (parent instanceof TracedSpan) return trace.setSpan(ROOT_CONTEXT, parent.span);
  const remote = typeof parent === 'string' ? spanContextOf(parent) : undefined;
  return remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
}

/** `version-trace-span-flags`. Later versions may append fields. Ids of only zeros are invalid. */
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

/** Reports OpenTelemetry's own errors, which are failed exports, and its warnings, such as dropped spans. */
function complaints(failures: Failures): Parameters<typeof diag.setLogger>[0] {
  const warnings = new Set<string>();
  const warningOf = ({ message }: Error): string => {
    // The number of dropped spans differs each time.
    const warning = `OpenTelemetry warned: ${message.replaceAll(/\d+/g, 'N')}`;
    if (warnings.size < MAX_WARNINGS) warnings.add(warning);
    return warnings.has(warning) ? warning : 'OpenTelemetry warned';
  };
  const ignore = (): void => {};
  return {
    error: (...said) => failures.failed(NOT_SENT, errorOf(said)),
    warn(...said) {
      const error = errorOf(said);
      failures.failed(warningOf(error), error);
    },
    info: ignore,
    debug: ignore,
    verbose: ignore,
  };
}

/** An exporter that also reports successes, because OpenTelemetry reports only failures. */
function reportingSuccess(exporter: SpanExporter, failures: Failures): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code === EXPORTED) failures.worked(NOT_SENT);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** What OpenTelemetry has said, as an error. It reports errors as JSON with a stack. */
function errorOf(said: readonly unknown[]): Error {
  const parts = said.map(partOf);
  const message = parts.map(({ words }) => words).join(' ');
  const error = new Error(message.slice(0, MAX_MESSAGE_LENGTH));
  const stack = parts.find((part) => part.stack !== undefined)?.stack;
  if (stack !== undefined) error.stack = stack;
  return error;
}

function partOf(said: unknown): { readonly words: string; readonly stack?: string | undefined } {
  if (said instanceof Error) return { words: said.message, stack: said.stack };
  const text = typeof said === 'string' ? said : (JSON.stringify(said) ?? '');
  if (!text.startsWith('{')) return { words: text };
  try {
    const { name, message, code, stack } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const words = [name, message, code].filter((each) => typeof each === 'string' && each !== '');
    return {
      words: words.length === 0 ? text : words.join(' '),
      stack: typeof stack === 'string' ? stack : undefined,
    };
  } catch {
    return { words: text };
  }
}

/** @param limit milliseconds */
async function within(limit: number, closing: Promise<void>, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no response within ${String(limit / 1000)} s`), limit);
  });
  const ended = closing.then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const fault = await Promise.race([ended, late]);
  clearTimeout(timer);
  if (fault !== null) log.warn('could not send the last traces', { what: fault });
}
