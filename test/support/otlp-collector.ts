import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fields } from './protobuf-fields.ts';
import { eventually } from './signals.ts';

/** A span as a collector receives it. Ids are hexadecimal. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: SpanKindName;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Attributes of the process: service.name and so on. */
  readonly resource: Readonly<Record<string, string | number | boolean>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
  /** The message of the status. */
  readonly message: string;
}

const kinds = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
export type SpanKindName = (typeof kinds)[number];

/**
 * A stand-in for an OpenTelemetry collector: receives spans by OTLP over HTTP, as protobuf, and
 * keeps them.
 */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** Path and headers of every request so far. */
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = [];
  /** Every received byte as a string, to check that it contains no secrets. */
  raw = '';
  /** Responds; never if it does nothing. */
  answer: (response: ServerResponse) => void = (response) =>
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path = '', headers } = request;
      const body = Buffer.concat(chunks);
      this.requests.push({ path, headers });
      this.raw += body.toString('latin1');
      this.spans.push(...spansOf(body));
      this.answer(response);
    });
  });

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    await new Promise<void>((listening) => collector.#server.listen(0, '127.0.0.1', listening));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** Waits for a span. */
  async span(
    what: string,
    isIt: (span: CollectedSpan) => boolean,
    limitMs = 40_000,
  ): Promise<CollectedSpan> {
    let found: CollectedSpan | undefined;
    await eventually(
      () => {
        found = this.spans.find(isIt);
        if (found !== undefined) return;
        const names = this.spans.map(({ name }) => name).join(', ');
        throw new Error(`no span ${what} among ${names}`);
      },
      { limitMs, what: `the span ${what}` },
    );
    if (found === undefined) throw new Error(`no span ${what}`);
    return found;
  }

  /** Waits for a span and all its ancestors, whose names from the root of the trace are given. */
  descended(lineage: readonly string[]): Promise<CollectedSpan> {
    const wanted = lineage.join(' > ');
    return this.span(wanted, (span) => this.lineage(span).join(' > ') === wanted);
  }

  /** From the root span of the trace to this one, by name; a missing parent is `?`. */
  lineage(span: CollectedSpan): readonly string[] {
    if (span.parentSpanId === '') return [span.name];
    const { traceId, parentSpanId } = span;
    const parent = this.spans.find(
      (each) => each.spanId === parentSpanId && each.traceId === traceId,
    );
    return [...(parent === undefined ? ['?'] : this.lineage(parent)), span.name];
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

// The numbers are those of opentelemetry/proto/collector/trace/v1/trace_service.proto and its
// imports.

function spansOf(body: Buffer): readonly CollectedSpan[] {
  return new Fields(body).all(1).flatMap((ofResource) => {
    const resource = attributesOf(ofResource.one(1)?.all(1) ?? []);
    return ofResource
      .all(2)
      .flatMap((ofScope) => ofScope.all(2).map((span) => spanOf(span, resource)));
  });
}

function spanOf(span: Fields, resource: CollectedSpan['resource']): CollectedSpan {
  const status = span.one(15);
  return {
    traceId: span.hex(1),
    spanId: span.hex(2),
    parentSpanId: span.hex(4),
    name: span.text(5),
    kind: kinds[span.number(6)] ?? 'unspecified',
    start: span.fixed64(7),
    end: span.fixed64(8),
    attributes: attributesOf(span.all(9)),
    resource,
    links: span.all(13).map((link) => ({ traceId: link.hex(1), spanId: link.hex(2) })),
    failed: status?.number(3) === 2,
    message: status?.text(2) ?? '',
  };
}

function attributesOf(pairs: readonly Fields[]): CollectedSpan['attributes'] {
  return Object.fromEntries(
    pairs.map((pair) => {
      const value = pair.one(2);
      if (value?.has(2) === true) return [pair.text(1), value.number(2) === 1];
      if (value?.has(3) === true) return [pair.text(1), value.number(3)];
      if (value?.has(4) === true) return [pair.text(1), value.double(4)];
      return [pair.text(1), value?.text(1) ?? ''];
    }),
  );
}
