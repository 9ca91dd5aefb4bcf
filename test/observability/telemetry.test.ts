import { expect } from 'chai';
import { createTelemetry, type TelemetryOptions } from '../../observability/create-telemetry.ts';
import { CoordinationError } from '../../scheduler/coordination.ts';

type Line = Readonly<Record<string, unknown>>;

function listening(options: Partial<TelemetryOptions> = {}) {
  const texts: string[] = [];
  const telemetry = createTelemetry({
    level: 'debug',
    strict: true,
    destination: { write: (text) => void texts.push(text) },
    ...options,
  });
  return { telemetry, texts, lines: () => texts.map((text) => JSON.parse(text) as Line) };
}

describe('the log', () => {
  it('writes one line of JSON for each message, even if it has line breaks', () => {
    const { telemetry, texts, lines } = listening({ fields: { roles: ['api'] } });
    telemetry.log.info('two\nlines', { run: 'r1' });
    expect(texts).to.have.lengthOf(1);
    expect(texts[0]?.trimEnd()).to.not.include('\n');
    const line = lines()[0];
    expect(line).to.include({ level: 'info', message: 'two\nlines', run: 'r1' });
    expect(line?.roles).to.deep.equal(['api']);
    expect(line?.time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('omits messages below its level', () => {
    const { telemetry, lines } = listening({ level: 'warn' });
    telemetry.log.info('not this');
    telemetry.log.warn('this');
    expect(lines().map((line) => line.message)).to.deep.equal(['this']);
  });

  it('writes nothing at the level silent', () => {
    const { telemetry, texts } = listening({ level: 'silent' });
    telemetry.log.error('not even this');
    expect(texts).to.have.lengthOf(0);
  });

  it('hides secrets by the names of their fields, however deep', () => {
    const { telemetry, texts } = listening();
    telemetry.log.info('a request', {
      agent_secret: 'hush1',
      headers: { Authorization: 'hush2', cookie: 'hush3' },
      list: [{ refresh_token: 'hush4' }, new Map([['apiKey', 'hush5']])],
      JWT_SECRET_KEY: 'hush6',
      kept: 'seen',
    });
    expect(texts[0]).to.not.match(/hush/);
    expect(texts[0]).to.include('seen');
  });

  it('hides secrets inside strings, including messages and errors', () => {
    const { telemetry, texts } = listening();
    const token = `eyJhbGciOiJIUzI1NiJ9.${'eyJzdWIiOiJhIn0'}.c2lnbmF0dXJl`;
    const cause = new Error('could not reach mongodb://user:hush@db/svc');
    telemetry.log.error(`refused ${token}`, {
      error: new Error('connecting to esdb://admin:hush@store:2113 failed', { cause }),
      header: 'Bearer hush.hush',
    });
    expect(texts[0]).to.not.match(/hush|c2lnbmF0dXJl/);
    expect(texts[0]).to.include('esdb://[hidden]@store:2113');
  });

  it('shows an error with its code, its stack and its cause', () => {
    const { telemetry, lines } = listening();
    const error = Object.assign(new TypeError('outer', { cause: new Error('inner') }), {
      code: 'CONFLICT',
    });
    telemetry.log.warn('failed', { error });
    const shown = lines()[0]?.error as Line;
    expect(shown).to.include({ name: 'TypeError', message: 'outer', code: 'CONFLICT' });
    expect(shown.stack).to.match(/telemetry\.test/);
    expect(shown.cause).to.include({ message: 'inner' });
  });

  it('writes cyclic values, big integers, and fields with the names of its own', () => {
    const { telemetry, lines } = listening();
    const circle: { self?: unknown } = {};
    circle.self = circle;
    telemetry.log.info('odd', { circle, revision: 12n, level: 'high', message: 'mine' });
    expect(lines()[0]).to.include({ level: 'info', level_: 'high', message_: 'mine' });
    expect(lines()[0]).to.include({ message: 'odd', revision: '12' });
  });
});

describe('the metrics', () => {
  it('show what was counted and observed, with help and type', async () => {
    const { telemetry } = listening();
    telemetry.count('task_executions_total', { status: 'success' });
    telemetry.count('task_executions_total', { status: 'success' }, 2);
    telemetry.observe('fire_lateness_seconds', 0.02);
    const text = await telemetry.metrics.text();
    expect(text).to.match(
      /^# HELP task_executions_total .+\n# TYPE task_executions_total counter$/m,
    );
    expect(text).to.match(/^task_executions_total\{status="success"\} 3$/m);
    expect(text).to.match(/^fire_lateness_seconds_bucket\{le="0\.025"\} 1$/m);
    expect(telemetry.metrics.contentType).to.match(/^text\/plain; version=0\.0\.4/);
  });

  it('include the memory, processor time and event loop lag of the process', async () => {
    const text = await listening().telemetry.metrics.text();
    for (const name of [
      'process_resident_memory_bytes',
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_p99_seconds',
    ]) {
      expect(text).to.match(new RegExp(`^${name} [\\d.e+-]+$`, 'm'));
    }
  });

  it('are separate from those of another telemetry in the same process', async () => {
    const one = listening().telemetry;
    const other = listening().telemetry;
    one.count('scheduler_lost_races_total');
    expect(await other.metrics.text()).to.match(/^scheduler_lost_races_total 0$/m);
  });

  it('read gauges on request, and drop values that the last reading lacks', async () => {
    const { telemetry } = listening();
    let readings = [{ labels: { projection: 'tasks' }, value: 3 }];
    telemetry.metrics.gauge('projection_lag_seconds', () => Promise.resolve(readings));
    expect(await telemetry.metrics.text()).to.include('{projection="tasks"} 3\n');
    readings = [{ labels: { projection: 'runs' }, value: 1 }];
    const text = await telemetry.metrics.text();
    expect(text).to.include('{projection="runs"} 1\n').and.not.include('{projection="tasks"}');
  });

  it('omit a gauge that cannot be read, and log that until it can', async () => {
    const { telemetry, lines } = listening();
    let fails = true;
    telemetry.metrics.gauge('runs_waiting', async () => {
      if (fails) throw new Error('store is gone');
      return [{ value: 3 }];
    });
    const text = await telemetry.metrics.text();
    expect(text).to.not.match(/^runs_waiting /m);
    expect(text).to.match(/^process_cpu_seconds_total /m);
    await telemetry.metrics.text();
    fails = false;
    expect(await telemetry.metrics.text()).to.match(/^runs_waiting 3$/m);
    const message = 'could not read the gauge runs_waiting; retrying when metrics are read again';
    const shown = lines().filter(({ level }) => level !== 'debug');
    expect(shown.map((line) => [line.level, line['message'], line['error']])).to.deep.equal([
      ['warn', message, 'store is gone'],
      ['info', `succeeded again after: ${message}`, undefined],
    ]);
  });

  it('log one cause for all gauges that a store has', async () => {
    const { telemetry, lines } = listening();
    for (const name of ['waits_open', 'workers_heard'] as const) {
      telemetry.metrics.gauge(name, () => Promise.reject(new CoordinationError('away')));
    }
    await telemetry.metrics.text();
    const shown = lines().filter(({ level }) => level !== 'debug');
    expect(shown.map((line) => line['message'])).to.deep.equal([
      'coordination store unavailable: away',
    ]);
  });

  const misuses: readonly (readonly [string, (one: ReturnType<typeof listening>) => void])[] = [
    ['an unknown counter', ({ telemetry }) => telemetry.count('unheard_of_total')],
    ['an unknown histogram', ({ telemetry }) => telemetry.observe('unheard_of_seconds', 1)],
    ['an unknown label', ({ telemetry }) => telemetry.count('runs_taken_over_total', { a: 'b' })],
    ['a missing label', ({ telemetry }) => telemetry.count('fires_total')],
    ['a negative step', ({ telemetry }) => telemetry.count('runs_taken_over_total', {}, -1)],
    [
      'a value that is not a number',
      ({ telemetry }) => telemetry.observe('fire_lateness_seconds', Number.NaN),
    ],
  ];
  for (const [what, use] of misuses) {
    it(`throw for ${what} when strict, and otherwise log it once`, () => {
      expect(() => use(listening())).to.throw(/^Telemetry: /);
      const lenient = listening({ strict: false });
      use(lenient);
      use(lenient);
      expect(lenient.lines()).to.have.lengthOf(1);
      expect(lenient.lines()[0]).to.include({ level: 'error' });
    });
  }
});
