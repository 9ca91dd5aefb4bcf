import { expect } from 'chai';
import { join } from 'node:path';
import { parse } from 'yaml';
import { counters, gauges, histograms } from '../../../observability/metric-catalogue.ts';
import { read } from '../../docs/documents.ts';
import { speaksOf } from '../../support/promql.ts';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** One line of the text format: a series with its labels and its value. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** @throws AssertionError at an invalid line of the text format */
function samplesOf(text: string): readonly Sample[] {
  const lines = text
    .split('\n')
    .filter((line) => line !== '' && !/^# (HELP|TYPE) \w+ \S/.test(line));
  return lines.map((line) => {
    const parts = /^(\w+)(?:\{(.*)\})? ([-+.\deEInfNa]+)$/.exec(line);
    expect(parts, line).to.not.equal(null);
    const [, name = '', inside = '', value] = parts ?? [];
    const pairs = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const labels = Object.fromEntries(pairs.map(([, label = '', each = '']) => [label, each]));
    return { name, labels, value: Number(value) };
  });
}

const familyOf = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');

describe('the metrics of a service', function () {
  this.timeout(180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();

  it('have every family of the catalogue and of the dashboard, with their labels', async () => {
    const data = join(directory(), 'data');
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data });
    const credentials = credentialsIn(data);
    const client = service.client(await signIn(service.client(), credentials));
    const task = await client.post('/tasks', {
      title: 'counted',
      description: 'is run once',
      schedule_kind: 'cron',
      schedule_expr: '0 3 1 1 *',
      created_by: credentials.agent_id,
      payload: { pipeline: [{ uses: 'sleep', with: { seconds: 0 } }] },
    });
    const path = `/tasks/${task.textAt('id')}`;
    expect((await client.post(`${path}/run_now?wait=20`)).at('details.run.state')).to.equal(
      'succeeded',
    );
    expect((await client.get(path, { once: true })).status).to.equal(200);
    const unknown = '/tasks/raw-paths-are-no-labels';
    expect((await client.get(unknown, { once: true })).status).to.equal(400);
    const scrape = async () => {
      const answer = await client.get('/ext/observability/metrics', { token: null });
      expect(answer.header('content-type')).to.match(/^text\/plain; version=0\.0\.4/);
      return answer.text;
    };
    const value = (text: string, name: string, labels: Readonly<Record<string, string>> = {}) =>
      samplesOf(text)
        .filter((each) => each.name === name)
        .find((each) => Object.entries(labels).every(([label, is]) => each.labels[label] === is))
        ?.value;
    let text = '';
    await eventually(async () => {
      const now = (text = await scrape());
      expect(value(now, 'projection_events_total', { projection: 'runs' })).to.be.greaterThan(0);
      expect(value(now, 'lease_held', { lease: 'scheduler' })).to.equal(1);
      expect(value(now, 'members_alive', { role: 'worker' })).to.equal(1);
      expect(value(now, 'event_log_bytes')).to.be.greaterThan(0);
      expect(value(now, 'health_status', { check: 'scheduler' })).to.equal(0);
    });

    const families = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name));
    const catalogue = { ...counters, ...gauges, ...histograms };
    expect(Object.keys(catalogue).filter((name) => !families.has(name))).to.deep.equal([]);
    const { panels } = JSON.parse(read('docs/grafana/dashboard.json')) as {
      readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
    };
    const { groups } = parse(read('docs/grafana/alerts.yml')) as {
      readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[];
    };
    const expressions = [
      ...panels.flatMap(({ targets = [] }) => targets),
      ...groups.flatMap(({ rules }) => rules),
    ];
    const named = expressions.flatMap(({ expr }) =>
      speaksOf(expr).selectors.map(({ name }) => name),
    );
    expect(
      named.filter((name) => !families.has(name) && !families.has(familyOf(name))),
    ).to.deep.equal([]);

    const odd = samplesOf(text).filter(({ name, labels }) => {
      const known: { readonly labels: readonly string[] } | undefined =
        catalogue[familyOf(name) as keyof typeof catalogue] ??
        catalogue[name as keyof typeof catalogue];
      const given = Object.keys(labels).filter((label) => label !== 'le');
      return known !== undefined && given.toSorted().join() !== [...known.labels].toSorted().join();
    });
    expect(
      odd.filter(({ labels, value: is }) => Object.keys(labels).length > 0 || is !== 0),
    ).to.deep.equal([]);

    expect(value(text, 'http_requests_total', { endpoint: '/tasks/{id}', method: 'GET' })).to.equal(
      2,
    );
    expect(text).to.not.include('raw-paths');
    expect(value(text, 'task_executions_total', { status: 'succeeded' })).to.equal(1);
    expect(value(text, 'task_execution_seconds_count', { status: 'succeeded' })).to.equal(1);
    expect(value(text, 'tool_call_seconds_count', { tool: 'sleep', outcome: 'result' })).to.equal(
      1,
    );
    expect(value(text, 'event_store_append_seconds_count')).to.be.greaterThan(5);
    expect(value(text, 'read_wait_seconds_count', { projection: 'tasks' })).to.be.greaterThan(0);
    expect(value(text, 'service_ready')).to.equal(1);
    expect(value(text, 'scheduler_tasks')).to.equal(1);
    expect(value(text, 'run_slots')).to.equal(64);
    expect(value(text, 'data_directory_free_bytes')).to.be.greaterThan(0);
    expect(value(text, 'extension_state', { extension: 'webui', state: 'loaded' })).to.equal(1);
    expect(value(text, 'process_cpu_seconds_total')).to.be.greaterThan(0);
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
  });
});
