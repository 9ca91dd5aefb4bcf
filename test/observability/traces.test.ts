import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { diag, trace } from '@opentelemetry/api';
import { createTraces, type ProcessTraces } from '../../observability/open-telemetry.ts';
import type { LogFields } from '../../observability/telemetry.ts';
import type { TraceSettings } from '../../observability/trace-settings.ts';
import { typescriptFiles } from '../support/architecture/typescript-files.ts';
import { OtlpCollector } from '../support/otlp-collector.ts';
import { projectRoot } from '../support/project-root.ts';
import { reportingTo } from '../support/reporting-to.ts';
import { eventually } from '../support/signals.ts';

const caller = '4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7';

describe('traces', () => {
  let collector: OtlpCollector;
  let traces: ProcessTraces;
  const lines: { readonly level: string; readonly message: string; readonly fields: LogFields }[] =
    [];
  let now: number;
  const endpoint = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const before = process.env[endpoint];

  function open(settings: Partial<TraceSettings> = {}): void {
    process.env[endpoint] = `${collector.url}/v1/traces`;
    const defaults = { sampler: 'parentbased_always_on', ratio: 1, propagates: true } as const;
    const sending = { delay: 1_000, timeout: 1_000, queue: 100, batch: 100 };
    const at =
      (level: string) =>
      (message: string, fields: LogFields = {}): void =>
        void lines.push({ level, message, fields });
    const log = { debug: at('debug'), info: at('info'), warn: at('warn') };
    const telemetry = reportingTo(log, () => now);
    traces = createTraces(
      { ...defaults, ...sending, ...settings },
      { version: '1.2.3', ...telemetry },
    );
  }

  beforeEach(async () => {
    collector = await OtlpCollector.start();
    lines.length = 0;
    now = 0;
  });
  afterEach(async () => {
    await traces.close();
    await collector.close();
    if (before === undefined) delete process.env[endpoint];
    else process.env[endpoint] = before;
  });

  const shown = () => lines.filter(({ level }) => level !== 'debug');
  const send = (): void => traces.begin('a').end();
  /** Sends a span that the collector rejects. */
  async function fail(): Promise<void> {
    const before = lines.length;
    send();
    await eventually(() => lines.length > before);
  }

  it('have one line while they cannot be sent, one a minute with the count, and one when they are sent again', async () => {
    collector.answer = (response) => response.writeHead(400).end();
    open({ delay: 1 });
    await fail();
    await fail();
    now += 61_000;
    await fail();
    const message = 'could not send traces';
    const [first] = shown();
    expect(first).to.deep.include({ level: 'warn', message });
    expect(first?.fields['error']).to.include('Bad Request');
    expect(JSON.stringify(shown())).not.to.include('node_modules');
    const { error } = lines[0]?.fields ?? {};
    expect((error as Error).stack).to.include('node_modules');
    collector.answer = (response) => response.writeHead(200).end();
    send();
    await eventually(() => shown().length > 2);
    expect(shown().slice(1)).to.deep.equal([
      { level: 'warn', message, fields: { ...first?.fields, times: 2, seconds: 61 } },
      {
        level: 'info',
        message: `succeeded again after: ${message}`,
        fields: { times: 3, seconds: 61 },
      },
    ]);
  });

  it('have one line a minute for each kind of warning', () => {
    open();
    for (const kind of ['a', 'b']) {
      for (const number of [17, 18]) diag.warn(`dropped ${String(number)} ${kind}`);
    }
    expect(shown().map((line) => line.message)).to.deep.equal([
      'OpenTelemetry warned: dropped N a',
      'OpenTelemetry warned: dropped N b',
    ]);
  });

  it('are sent when the process ends at the latest, with their attributes', async () => {
    open();
    const root = traces.begin('root', { kind: 'server', attributes: { a: 1, b: undefined } });
    const inner = root.child('inner', { kind: 'client' });
    inner.fail('E_AWAY', 'Bearer abc.def is unavailable');
    inner.end();
    root.rename('renamed');
    root.set({ c: true, d: 0.5, e: 'text' });
    root.end();
    await traces.close();
    const [first, second] = collector.spans;
    expect(first).to.deep.include({ name: 'inner', kind: 'client', failed: true });
    expect(first?.message).to.equal('Bearer [hidden] is unavailable');
    expect(first?.attributes).to.deep.equal({ 'error.type': 'E_AWAY' });
    expect(first?.parentSpanId).to.equal(second?.spanId);
    expect(second).to.deep.include({ name: 'renamed', kind: 'server', failed: false });
    expect(second?.attributes).to.deep.equal({ a: 1, c: true, d: 0.5, e: 'text' });
    expect(second?.resource).to.include({
      'service.name': 'task-scheduling-service',
      'service.version': '1.2.3',
    });
    expect(Number((second?.end ?? 0n) - (second?.start ?? 0n))).to.be.greaterThan(0);
  });

  it('continue the trace of another service or of an event', () => {
    open();
    const span = traces.begin('a', { parent: `00-${caller}-01` });
    expect(span.traceparent).to.match(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/);
    expect(span.headers).to.deep.equal({ traceparent: span.traceparent });
  });

  it('ignore headers of the caller that are invalid', () => {
    open();
    for (const parent of [
      '',
      'nonsense',
      `ff-${caller}-01`,
      `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    ]) {
      expect(traces.begin('a', { parent }).traceparent).to.not.include('4bf92f3577b3');
    }
    // Of a later version of the header, the known part is used.
    expect(traces.begin('a', { parent: `01-${caller}-01-more` }).traceparent).to.include('4bf92f');
  });

  it('are kept or dropped as the caller decided', async () => {
    open({ sampler: 'parentbased_always_off' });
    const kept = traces.begin('kept', { parent: `00-${caller}-01` });
    const notKept = traces.begin('not kept', { parent: `00-${caller}-00` });
    const own = traces.begin('own');
    expect([notKept, own].map(({ traceparent }) => traceparent.slice(-2))).to.deep.equal([
      '00',
      '00',
    ]);
    for (const span of [kept, notKept, own]) span.end();
    await traces.close();
    expect(collector.spans.map(({ name }) => name)).to.deep.equal(['kept']);
  });

  it('neither read nor send headers if propagation is off', () => {
    open({ propagates: false });
    const span = traces.begin('a', { kind: 'server', parent: `00-${caller}-01` });
    expect(span.traceparent).to.not.include('4bf92f3577b3');
    expect(span.headers).to.deep.equal({});
    // The log belongs to the service, so a trace still continues through its events.
    expect(traces.begin('b', { parent: `00-${caller}-01` }).traceparent).to.include('4bf92f3577b3');
  });

  it('include spans that other code starts through the API of OpenTelemetry', async () => {
    open();
    const span = traces.begin('outer');
    await span.within(async () => {
      await Promise.resolve();
      expect(traces.active()?.traceparent).to.equal(span.traceparent);
      trace.getTracer('of an extension').startSpan('inner').end();
    });
    expect(traces.active()).to.equal(undefined);
    span.end();
    await traces.close();
    const [inner, outer] = collector.spans;
    expect([inner?.name, inner?.parentSpanId]).to.deep.equal(['inner', outer?.spanId]);
  });

  it('close in time if no collector responds, and log a warning', async () => {
    collector.answer = () => {};
    open({ timeout: 200 });
    traces.begin('a').end();
    await traces.close();
    expect(shown()).not.to.have.length(0);
  });
});

describe('the code of OpenTelemetry', () => {
  it('is imported by one file, which is loaded only on demand', () => {
    const importing = (pattern: RegExp): readonly string[] =>
      typescriptFiles(projectRoot)
        .filter((path) => !path.startsWith('test/'))
        .filter((path) => pattern.test(readFileSync(join(projectRoot, path), 'utf8')));
    expect(importing(/from '@opentelemetry\//)).to.deep.equal(['observability/open-telemetry.ts']);
    expect(importing(/from '[./]*(?:observability\/)?open-telemetry\.ts'/)).to.deep.equal([]);
    expect(importing(/import\('[./]*observability\/open-telemetry\.ts'\)/)).to.deep.equal([
      'app/watching/traces.ts',
    ]);
  });
});
