import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { traceConfiguration, traceVariables } from '../../../app/configuration/trace-settings.ts';
import { read } from '../../docs/documents.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('the settings of traces', () => {
  it('leave them off by default', () => {
    expect(traceConfiguration({})).to.deep.equal({ traces: null, warnings: [] });
    expect(readConfiguration({}).traces).to.equal(null);
  });

  const cases: readonly (readonly [what: string, env: Record<string, string>, on: boolean])[] = [
    ['an endpoint', endpoint, true],
    ['an endpoint of traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c/v1/traces' }, true],
    ['the exporter otlp', { OTEL_TRACES_EXPORTER: 'otlp' }, true],
    ['an endpoint and the exporter none', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, false],
    ['an unavailable exporter', { ...endpoint, OTEL_TRACES_EXPORTER: 'zipkin' }, false],
    ['OTEL_SDK_DISABLED', { ...endpoint, OTEL_SDK_DISABLED: 'True' }, false],
    ['only a name', { OTEL_SERVICE_NAME: 'a' }, false],
  ];
  for (const [what, env, on] of cases) {
    it(`turn them ${on ? 'on' : 'off'} for ${what}`, () => {
      expect(traceConfiguration(env).traces !== null).to.equal(on);
    });
  }

  it('have the defaults of the specification', () => {
    expect(traceConfiguration(endpoint)).to.deep.equal({
      traces: {
        sampler: 'parentbased_always_on',
        ratio: 1,
        propagates: true,
        delay: 5_000,
        timeout: 30_000,
        queue: 2_048,
        batch: 512,
      },
      warnings: [],
    });
  });

  it('accept the given values', () => {
    const { traces, warnings } = traceConfiguration({
      ...endpoint,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_PROPAGATORS: 'baggage',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_BSP_MAX_QUEUE_SIZE: '10',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '20',
    });
    expect(traces).to.deep.include({
      sampler: 'parentbased_traceidratio',
      ratio: 0.25,
      propagates: false,
      delay: 100,
      queue: 20,
      batch: 20,
    });
    expect(warnings).to.deep.equal([]);
  });

  it('warn of invalid values and ignore them', () => {
    const { traces, warnings } = traceConfiguration({
      ...endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
      OTEL_PROPAGATORS: 'tracecontext,b3',
      OTEL_BSP_SCHEDULE_DELAY: 'soon',
    });
    expect(traces).to.deep.include({ sampler: 'parentbased_always_on', delay: 5_000 });
    expect(traces?.propagates).to.equal(true);
    const named = warnings.map((warning) => warning.split(' ', 1)[0]);
    expect(named).to.deep.equal([
      'OTEL_EXPORTER_OTLP_PROTOCOL',
      'OTEL_TRACES_SAMPLER',
      'OTEL_PROPAGATORS',
      'OTEL_BSP_SCHEDULE_DELAY',
    ]);
  });

  it('are all documented', () => {
    const text = read('docs/reference/configuration.md');
    expect(traceVariables.filter((name) => !text.includes(`\`${name}\``))).to.deep.equal([]);
  });
});
