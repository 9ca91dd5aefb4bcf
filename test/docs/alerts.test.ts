import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { counters } from '../../observability/metric-catalogue.ts';
import { Metrics } from '../../observability/metrics.ts';
import { beginKnownSeries, knownSeries } from '../../app/watching/known-series.ts';
import { projectRoot } from '../support/project-root.ts';
import { requiredProgram } from '../support/required-program.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { alertCases } from './alert-cases.ts';
import { read } from './documents.ts';

const file = join(projectRoot, 'docs/grafana/alerts.yml');
const { groups } = parse(read('docs/grafana/alerts.yml')) as {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
};
const rules = groups.flatMap((group) => group.rules);

/** A query to the rules after so many minutes, and the expected number of alerts; 0 for none. */
const asked = (minute: number, expr: string, alerts: number): object => ({
  expr: `count(${expr})`,
  eval_time: `${minute}m`,
  exp_samples: alerts === 0 ? [] : [{ labels: '{}', value: alerts }],
});

const firing = (alert: string): string => `ALERTS{alertname="${alert}",alertstate="firing"}`;

const seriesOf = (series: Readonly<Record<string, string>>): object[] =>
  Object.entries(series).map(([name, values]) => ({ series: name, values }));

describe('the alert rules, as promtool evaluates them', function () {
  this.timeout(60_000);
  const directory = useTemporaryDirectory();
  let promtool = '';

  before(function () {
    promtool = requiredProgram(this, 'promtool');
  });

  function run(args: readonly string[], input = ''): void {
    const { status, stdout, stderr } = spawnSync(promtool, args, { input, encoding: 'utf8' });
    expect(status, `${stdout}${stderr}`).to.equal(0);
    expect(stderr).to.equal('');
  }

  /** @param rulesFile the rules that promtool evaluates */
  function test(tests: readonly object[], rulesFile = file): void {
    const path = join(directory(), 'tests.yml');
    const whole = { rule_files: [rulesFile], evaluation_interval: '1m', tests };
    writeFileSync(path, stringify(whole));
    run(['test', 'rules', path]);
  }

  /** Writes the rules of one alert to a file, because each minute of a test evaluates every rule. @returns its path */
  function rulesOf(alert: string): string {
    const path = join(directory(), 'rules.yml');
    const own = groups.map((group) => ({
      ...group,
      rules: group.rules.filter((rule) => rule.alert === alert),
    }));
    writeFileSync(path, stringify({ groups: own.filter((group) => group.rules.length > 0) }));
    return path;
  }

  it('are valid', () => {
    run(['check', 'rules', file]);
  });

  it('are all covered by the cases', () => {
    const tested = [...new Set(alertCases.map(({ alert }) => alert))];
    expect(tested.toSorted()).to.deep.equal(rules.map(({ alert }) => alert).toSorted());
  });

  for (const { alert, series, fires, clears } of alertCases) {
    const [first = ''] = Object.keys(series);
    it(`${alert} fires and clears again, by ${/^\w+/.exec(first)?.[0]}`, () => {
      const minutes = [asked(fires, firing(alert), 1), asked(clears, firing(alert), 0)];
      const given = { interval: '1m', input_series: seriesOf(series) };
      test([{ ...given, promql_expr_test: minutes }], rulesOf(alert));
    });
  }

  it('include counts from before the first scrape, for every counter', () => {
    // increase() alone treats the first value as the start of the series.
    const alone = rules.filter(({ expr }) => {
      const asks = [...expr.matchAll(/increase\(([a-z_]+(?:\{[^}]*\})?)\[(\w+)\]\)/g)];
      return asks.some(
        ([, series, span]) =>
          !expr.includes(`${series} unless last_over_time(${series}[5m] offset ${span})`),
      );
    });
    expect(alone.map(({ alert }) => alert)).to.deep.equal([]);
  });

  it('ignore old counts when single scrapes fail', () => {
    const everyCounter = alertCases
      .flatMap(({ series }) => Object.entries(series))
      .filter(([, values]) => /^\d+x120$/.test(values))
      .map(([name, values]) => [name, values.replace('x120', 'x100 stale ')] as const);
    expect(everyCounter.length).to.be.greaterThan(10);
    const gappy = everyCounter.map(([name, values]) => {
      const count = parseInt(values);
      return [name, `${values}${count}x30 stale ${count}x80`] as const;
    });
    const minutes = Array.from({ length: 110 }, (_, n) => 90 + n);
    const counting = gappy.map(([name]) => /^\w+/.exec(name)?.[0] ?? '');
    const loud = rules.filter(({ expr }) => counting.some((name) => expr.includes(name)));
    test([
      {
        interval: '1m',
        input_series: seriesOf(Object.fromEntries(gappy)),
        promql_expr_test: loud.flatMap(({ alert }) =>
          minutes.map((minute) => asked(minute, firing(alert), 0)),
        ),
      },
    ]);
  });

  it('stay silent for a healthy service, from its first minutes on', () => {
    const well = {
      'service_info{job="svc",instance="a"}': '1x90',
      'service_ready{job="svc",instance="a"}': '1x90',
      'lease_held{job="svc",instance="a",lease="scheduler"}': '1x90',
      'lease_held{job="svc",instance="a",lease="projector"}': '1x90',
      'lease_held{job="svc",instance="a",lease="waits"}': '1x90',
      'process_start_time_seconds{job="svc",instance="a"}': '0x90',
      'scheduler_audit_last_success_timestamp{job="svc",instance="a"}': '5+60x90',
      'fires_total{job="svc",instance="a",outcome="missed"}': '0x90',
      // An almost empty disk: the space reserved at a start would fill it in a day at that speed.
      'data_directory_free_bytes{job="svc",instance="a"}': '50000000000-100000000x5 49500000000x84',
    };
    const minutes = Array.from({ length: 90 }, (_, minute) => minute);
    const promql_expr_test = minutes.map((minute) => asked(minute, 'ALERTS', 0));
    test([{ interval: '1m', input_series: seriesOf(well), promql_expr_test }]);
  });
});

describe('the metrics, as promtool reads them', () => {
  it('follow the conventions', async function () {
    this.timeout(60_000);
    const promtool = requiredProgram(this, 'promtool');
    const metrics = new Metrics({ misuse: expect.fail });
    beginKnownSeries(metrics, ['webui']);
    const { stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], {
      input: await metrics.text(),
      encoding: 'utf8',
    });
    // The library names those of Node itself.
    const own = `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line !== '' && !/^(nodejs|process)_/.test(line));
    expect(own).to.deep.equal([]);
  });

  it('start at 0 for every series that is known before it is counted', async () => {
    const metrics = new Metrics({ misuse: expect.fail, ofNode: false });
    beginKnownSeries(metrics, ['webui']);
    const text = await metrics.text();
    // By extension, route and type of error, whose values depend on the installation.
    const open = ['extension_requests_total', 'extension_errors_total'];
    const silent = Object.keys(counters).filter(
      (name) => !new RegExp(`^${name}(\\{.*\\})? 0$`, 'm').test(text),
    );
    expect(silent).to.deep.equal(open);
    expect(text).to.include('fires_total{outcome="missed"} 0');
    expect(text).to.include('webhook_deliveries_total{outcome="failed"} 0');
    expect(knownSeries.http_requests_total).to.deep.include({
      method: 'GET',
      endpoint: '/tasks/{id}',
    });
  });
});
