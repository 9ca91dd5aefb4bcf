import { expect } from 'chai';
import { parse } from 'yaml';
import { runSkipReasons, spanSkipReasons } from '../../domain/vocabulary.ts';
import { eventStoreErrorCodes } from '../../domain/event-store.ts';
import { extensionStates } from '../../extensions/host/extension.ts';
import { counters, gauges, histograms } from '../../observability/metric-catalogue.ts';
import { Metrics } from '../../observability/metrics.ts';
import { speaksOf, type Spoken } from '../support/promql.ts';
import { anchorsOf, read } from './documents.ts';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string }[];
  };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const dashboard = JSON.parse(read('docs/grafana/dashboard.json')) as Dashboard;
const groups = parse(read('docs/grafana/alerts.yml')) as {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.groups.flatMap((group) => group.rules);
const targets = dashboard.panels.flatMap(({ title, targets: all = [] }) =>
  all.map(({ expr, legendFormat }) => ({ place: title, expr, shown: legendFormat })),
);
const expressions = [
  ...targets,
  ...rules.map(({ alert, expr, annotations }) => ({
    place: alert,
    expr,
    shown: Object.values(annotations).join(' ').replaceAll('$labels.', ''),
  })),
];

/** Labels that Prometheus itself adds to a series. */
const added = ['job', 'instance'];

const catalogue: Readonly<Record<string, { readonly labels: readonly string[] }>> = {
  ...counters,
  ...gauges,
  ...Object.fromEntries(
    Object.entries(histograms).flatMap(([name, { labels }]) => [
      [`${name}_bucket`, { labels: [...labels, 'le'] }],
      [`${name}_sum`, { labels }],
      [`${name}_count`, { labels }],
    ]),
  ),
};

/**
 * Possible values of labels. Missing labels depend on the installation: routes, tools, extensions.
 */
const closed: Readonly<Record<string, readonly string[]>> = {
  'fires_total outcome': ['run', ...spanSkipReasons, ...runSkipReasons],
  'task_executions_total status': ['succeeded', 'failed', 'canceled', 'retrying', 'interrupted'],
  'event_store_failures_total code': eventStoreErrorCodes,
  'webhook_deliveries_total outcome': ['delivered', 'retried', 'failed'],
  'extension_state state': extensionStates,
  'lease_held lease': ['scheduler', 'projector', 'waits'],
};

/** The unknown series and labels of an expression. */
function faultsOf({ selectors, labels }: Spoken, native: ReadonlySet<string>): string[] {
  const known = selectors.flatMap(({ name }) => catalogue[name]?.labels ?? []);
  const faults: string[] = [];
  for (const { name, matchers } of selectors) {
    const family = catalogue[name];
    if (family === undefined && !native.has(name)) faults.push(`there is no series ${name}`);
    for (const { label, value } of matchers) {
      if (added.includes(label)) continue;
      if (family !== undefined && !family.labels.includes(label))
        faults.push(`${name} has no ${label}`);
      const values = closed[`${name} ${label}`];
      const unknown = values && value.split('|').filter((each) => !values.includes(each));
      for (const each of unknown ?? []) faults.push(`${name} has no ${label} ${each}`);
    }
  }
  for (const label of labels) {
    const fits =
      [...known, ...added].includes(label) || selectors.some(({ name }) => native.has(name));
    if (!fits) faults.push(`nothing has the label ${label}`);
  }
  return faults;
}

/** Names of the series of Node itself, including those of summaries and histograms. */
async function nativeSeries(): Promise<ReadonlySet<string>> {
  const text = await new Metrics({ misuse: expect.fail }).text();
  const own = /^# TYPE ((?:process|nodejs)_\w+) (\w+)$/gm;
  return new Set(
    [...text.matchAll(own)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

describe('the dashboard and the alert rules', () => {
  it('use only existing series and labels', async () => {
    const native = await nativeSeries();
    const faults = expressions.flatMap(({ place, expr }) =>
      faultsOf(speaksOf(expr), native).map((fault) => `${place}: ${fault}`),
    );
    expect(expressions).to.not.have.lengthOf(0);
    expect(faults.join('\n')).to.equal('');
  });

  it('show only labels that the expression keeps', () => {
    const faults = expressions.flatMap(({ place, expr, shown }) => {
      const { labels, selectors } = speaksOf(expr);
      const whole = labels.length === 0 && !/\b(?:sum|max|min)\b/.test(expr);
      const left = whole
        ? [...added, ...selectors.flatMap(({ name }) => catalogue[name]?.labels ?? [])]
        : labels;
      const used = [...shown.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, label = '']) => label);
      return used.filter((label) => !left.includes(label)).map((label) => `${place}: ${label}`);
    });
    expect(faults.join('\n')).to.equal('');
  });

  it('are checked for unknown names', async () => {
    const native = await nativeSeries();
    const faults = (expr: string) => faultsOf(speaksOf(expr), native);
    expect(faults('sum by (nobody) (rate(nothing_total{colour="red"}[5m]))')).to.deep.equal([
      'there is no series nothing_total',
      'nothing has the label nobody',
    ]);
    expect(faults('fires_total{colour="red"} > 1 and fires_total{outcome="burnt"}')).to.deep.equal([
      'fires_total has no colour',
      'fires_total has no outcome burnt',
    ]);
    expect(faults('process_cpu_seconds_total + nodejs_gc_duration_seconds_sum')).to.deep.equal([]);
    expect(() => speaksOf('rate(x[5m]')).to.throw('brackets');
    expect(() => speaksOf('x ~ 1')).to.throw('no PromQL');
  });
});

describe('the dashboard', () => {
  it('can be imported, because its data source is a variable everywhere', () => {
    const variables = dashboard.templating.list.map(({ name, type }) => [name, type]);
    expect(variables).to.deep.include(['datasource', 'datasource']);
    const elsewhere = dashboard.panels.filter(
      ({ type, datasource }) => type !== 'row' && datasource?.uid !== '${datasource}',
    );
    expect(elsewhere).to.deep.equal([]);
    expect(dashboard).to.not.have.property('id');
  });

  it('has a row for each part of the service', () => {
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).to.deep.equal([
      'At a glance',
      'API',
      'Scheduling',
      'Runs',
      'Projections',
      'Stores',
      'Extensions',
      'Process',
    ]);
  });

  it('shows every metric of the catalogue except those for rules only', () => {
    const shown = targets.flatMap(({ expr }) => speaksOf(expr).selectors.map(({ name }) => name));
    const all = Object.keys({ ...counters, ...gauges, ...histograms });
    const hidden = all.filter(
      (name) => !shown.some((each) => each.replace(/_(bucket|sum|count)$/, '') === name),
    );
    expect(hidden).to.deep.equal(['scheduler_audit_last_success_timestamp']);
  });
});

describe('the alert rules', () => {
  it('each state the problem, its meaning, and where to find the remedy', () => {
    const anchors = anchorsOf(read('docs/how-to/alerts.md'));
    const names = rules.map(({ alert }) => alert);
    expect(new Set(names).size).to.equal(names.length);
    for (const { alert, labels, annotations } of rules) {
      expect(labels.severity, alert).to.be.oneOf(['critical', 'warning']);
      const { summary = '', description = '', runbook = '' } = annotations;
      expect([summary, description].map((text) => text.length > 10)).to.deep.equal([true, true]);
      const [file, anchor] = runbook.split('#');
      expect(file, alert).to.equal('docs/how-to/alerts.md');
      expect(anchors, alert).to.include(anchor);
    }
  });

  it('cover every section of the page of alerts', () => {
    const sections = anchorsOf(read('docs/how-to/alerts.md')).filter((each) =>
      each.startsWith('alert-'),
    );
    const led = rules.map(({ annotations }) => annotations['runbook']?.split('#')[1]);
    expect(sections.filter((each) => !led.includes(each))).to.deep.equal([]);
  });
});
