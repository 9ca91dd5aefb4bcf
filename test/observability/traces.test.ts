import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { trace } from '@opentelemetry/api';
import { createTraces, type ProcessTraces } from '../../observability/open-telemetry.ts';
import { silent } from '../../observability/telemetry.ts';
import type { TraceSettings } from '../../observability/trace-settings.ts';
import { typescriptFiles } from '../support/architecture/typescript-files.ts';
import { OtlpCollector } from '../support/otlp-collector.ts';
import { projectRoot } from '../support/project-root.ts';

const caller = '4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7';

describe('traces', () => {
  let collector: OtlpCollector;
  let traces: ProcessTraces;
  const warnings: string[] = [];
  const endpoint = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const before = process.env[endpoint];

  function open(settings: Partial<TraceSettings> = {}): void {
    process.env[endpoint] = `${collector.url}/v1/traces`;
    const defaults = { sampler: 'parentbased_always_on', ratio: 1, propagates: true } as const;
    const sending = { delay: 1_000, timeout: 1_000, queue: 100, batch: 100 };
    const log = { ...silent.log, warn: (message: string) => void warnings.push(message) };
    traces = createTraces({ ...defaults, ...sending, ...settings }, { version: '1.2.3', log });
  }

  beforeEach(async () => {
    collector = await OtlpCollector.start();
    warnings.length = 0;
  });
  afterEach(async () => {
    await traces.close();
    await collector.close();
    if (before === undefined) delete process.env[endpoint];
    else process.env[endpoint] = before;
  });

  it('are sent at the end at the latest, with what was said of them', async () => {
    open();
    const root = traces.begin('root', { kind: 'server', attributes: { a: 1, b: undefined } });
    const inner = root.child('inner', { kind: 'client' });
    inner.fail('E_AWAY', 'Bearer abc.def is away');
    inner.end();
    root.rename('renamed');
    root.set({ c: true, d: 0.5, e: 'text' });
    root.end();
    await traces.close();
    const [first, second] = collector.spans;
    expect(first).to.deep.include({ name: 'inner', kind: 'client', failed: true });
    expect(first?.message).to.equal('Bearer [hidden] is away');
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

  it('go on where another service, or an event, says', () => {
    open();
    const span = traces.begin('a', { parent: `00-${caller}-01` });
    expect(span.traceparent).to.match(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/);
    expect(span.headers).to.deep.equal({ traceparent: span.traceparent });
  });

  it('begin anew where what is said makes no sense', () => {
    open();
    for (const parent of [
      '',
      'nonsense',
      `ff-${caller}-01`,
      `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    ]) {
      expect(traces.begin('a', { parent }).traceparent).to.not.include('4bf92f3577b3');
    }
    // Of a version that is to come, what is known is taken.
    expect(traces.begin('a', { parent: `01-${caller}-01-more` }).traceparent).to.include('4bf92f');
  });

  it('leave it to the caller whether a trace is kept', async () => {
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

  it('neither heed nor send headers where nothing is to be propagated', () => {
    open({ propagates: false });
    const span = traces.begin('a', { kind: 'server', parent: `00-${caller}-01` });
    expect(span.traceparent).to.not.include('4bf92f3577b3');
    expect(span.headers).to.deep.equal({});
    // The log is the service's own: through it a trace goes on all the same.
    expect(traces.begin('b', { parent: `00-${caller}-01` }).traceparent).to.include('4bf92f3577b3');
  });

  it('take in what other code says by the API of OpenTelemetry', async () => {
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

  it('end in time where no collector answers, and say so', async () => {
    collector.answer = () => {};
    open({ timeout: 200 });
    traces.begin('a').end();
    await traces.close();
    expect(warnings.length).to.be.greaterThan(0);
  });
});

describe('the code of OpenTelemetry', () => {
  it('is imported by one file, which is loaded only when it is asked for', () => {
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
