import { expect } from 'chai';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { csvLine } from '../../../api/exporting/csv.ts';
import { exportRuns } from '../../../api/exporting/run-rows.ts';
import { progressText } from '../../../app/cli/store/archive-progress.ts';
import { toIso } from '../../../domain/clock.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { notFound } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { folded, LogOfTest, request, success } from '../../projections/recorded.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import type {
  Listed,
  ListedDocument,
  ListQuery,
  ReadModel,
} from '../../../projections/read-model.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { svc, type Called } from '../cli/command-line.ts';
import {
  addRetried,
  addRunNaming,
  addRuns,
  addStoredPayload,
  addTask,
  onLog,
} from './small-log.ts';
import { noSecretValues } from '../../../domain/pipeline/pipeline-secrets.ts';

interface Row {
  readonly type: string;
}

const AT = Date.parse('2026-05-01T10:00:00Z');

describe('a line of CSV', () => {
  it('quotes as RFC 4180 requires', () => {
    const cells = ['plain', 'a,b', 'say "so"', 'two\nlines', '', null, undefined, 1.5, false];
    expect(csvLine(cells)).to.equal('plain,"a,b","say ""so""","two\nlines",,,,1.5,false\r\n');
    expect(csvLine([{ a: ['b'] }])).to.equal('"{""a"":[""b""]}"\r\n');
  });

  it('has no string that a spreadsheet would execute', () => {
    const texts = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '=HYPERLINK("http://x","y")'];
    for (const text of texts) expect(csvLine([text])).to.match(/^"?'/);
    expect(csvLine([-1])).to.equal('-1\r\n');
    expect(csvLine(['a=b', '2-1'])).to.equal('a=b,2-1\r\n');
  });
});

describe('svc export --format', function () {
  this.timeout(180_000);
  let directory: TemporaryDirectory;
  let [first, second] = ['', ''];
  before(async () => {
    directory = await makeTemporaryDirectory();
    await onLog(directory.path, async (store) => {
      first = await addTask(store, AT);
      second = await addTask(store, AT + 1000);
      await addRuns(store, first, AT + 60_000, 3);
      await addRuns(store, second, AT + 120_000, 2);
    });
  });
  after(() => directory.remove());

  const rows = async (...words: string[]): Promise<Called> => {
    const env = { SVC_DATA_DIR: directory.path };
    const called = await svc(['export', '--format', ...words], { env });
    expect(called.code, called.err).to.equal(0);
    return called;
  };
  const events = async (
    ...words: string[]
  ): Promise<
    readonly { readonly type: string; readonly stream: string; readonly data: object }[]
  > => {
    const { out } = await rows('ndjson', ...words);
    return out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { type: string; stream: string; data: object });
  };

  it('has a line for each event, in the order of the log', async () => {
    const all = await events();
    expect(all).to.have.lengthOf(2 + 5 * 3);
    expect(all[0]).to.include({ type: 'TaskCreated', stream: `task-${first}`, revision: 0 });
    expect(all[0]).to.include({ position: '0000000000000001' });
  });

  it('filters by task with its runs, type, kind and time', async () => {
    expect(await events('--task', first.toUpperCase())).to.have.lengthOf(1 + 3 * 3);
    expect(await events('--task', second, '--kind', 'run')).to.have.lengthOf(2 * 3);
    const types = ['--type', 'RunStarted', '--type', 'TaskCreated'];
    expect(await events(...types)).to.have.lengthOf(5 + 2);
    const [since, until] = [toIso(AT + 61_000), toIso(AT + 120_000)];
    expect(await events('--since', since, '--until', until)).to.have.lengthOf(2 * 3);
    expect(await events('--until', '2026-05-01T10:00:00.001Z')).to.have.lengthOf(1);
  });

  it('includes the retry of a run, which follows its end', async () => {
    const place = await makeTemporaryDirectory();
    try {
      const taskId = await onLog(place.path, (store) => addRetried(store, AT));
      const { out } = await svc(['export', '--format', 'ndjson', '--task', taskId], {
        env: { SVC_DATA_DIR: place.path },
      });
      const types = out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as Row).type);
      expect(types).to.deep.equal(['RunRequested', 'RunStarted', 'RunFailed', 'RunRetried']);
    } finally {
      await place.remove();
    }
  });

  it('excludes runs of other tasks that mention the task', async () => {
    const place = await makeTemporaryDirectory();
    try {
      const [asked, other] = [newId(AT), newId(AT)];
      await onLog(place.path, async (store) => {
        await addRunNaming(store, other, asked, AT);
        await addRunNaming(store, asked, other, AT + 1000);
      });
      const { out } = await svc(['export', '--format', 'ndjson', '--task', asked], {
        env: { SVC_DATA_DIR: place.path },
      });
      const found = out
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { position: string }).position);
      expect(found.map(Number)).to.deep.equal([4, 5, 6]);
    } finally {
      await place.remove();
    }
  });

  it('includes the stored payloads of the events that triggered the task', async () => {
    const place = await makeTemporaryDirectory();
    try {
      const [asked, other] = [newId(AT), newId(AT)];
      await onLog(place.path, async (store) => {
        for (const tasks of [[other], [other, asked]]) await addStoredPayload(store, tasks, AT);
      });
      const { out } = await svc(['export', '--format', 'ndjson', '--task', asked], {
        env: { SVC_DATA_DIR: place.path },
      });
      const [row, ...more] = out.trimEnd().split('\n');
      expect(more).to.deep.equal([]);
      expect(JSON.parse(row ?? '')).to.deep.include({ type: 'PayloadStored' });
      expect(row).to.include(`"triggered_tasks":["${other}","${asked}"]`);
    } finally {
      await place.remove();
    }
  });

  it('reads a time without an offset in the zone of the task', async () => {
    const place = await makeTemporaryDirectory();
    try {
      const task = await onLog(place.path, async (store) => {
        const id = await addTask(store, AT, { timezone: 'Asia/Kathmandu' });
        await addRuns(store, id, AT + 60_000, 2);
        return id;
      });
      const taken = (...words: string[]): Promise<Called> =>
        svc(['export', '--format', 'ndjson', ...words], { env: { SVC_DATA_DIR: place.path } });
      const { out } = await taken('--task', task, '--since', '2026-05-01T15:46:01');
      expect(out.trimEnd().split('\n')).to.have.lengthOf(3);
      // Its first event is at 15:45 on 1 May there, and a bare date is the whole day.
      const whole = await taken('--task', task, '--since', '2026-05-01', '--until', '2026-05-01');
      expect(whole.out.trimEnd().split('\n')).to.have.lengthOf(7);
      const before = await taken('--task', task, '--until', '2026-04-30');
      expect(before.out).to.equal('');
      for (const words of [['--task', newId(AT)], []]) {
        const unzoned = await taken(...words, '--until', '2026-05-01');
        expect([unzoned.code, unzoned.out]).to.deep.equal([2, '']);
        expect(unzoned.err).to.include('--until').and.to.include('offset');
        const refused = await taken(...words, '--since', '2026-05-01T15:46:01');
        expect([refused.code, refused.out]).to.deep.equal([2, '']);
        expect(refused.err).to.include('--since').and.to.include('offset');
      }
    } finally {
      await place.remove();
    }
  });

  it('rejects unknown kinds and types and lists the known ones', async () => {
    const file = join(directory.path, 'none.csv');
    for (const [words, named] of [
      [
        ['--kind', 'run', '--kind', 'runs'],
        /--kind runs is unknown; use one of agent,.* run,.* demo, ext_…/,
      ],
      [
        ['--type', 'RunFaild'],
        /--type RunFaild is unknown; use one of AgentRegistered,.* RunFailed,/,
      ],
    ] as const) {
      const called = await svc(['export', '--format', 'csv', '--output', file, ...words], {
        env: { SVC_DATA_DIR: directory.path },
      });
      expect([called.code, called.out]).to.deep.equal([2, '']);
      expect(called.err).to.match(named);
      expect(existsSync(file)).to.equal(false);
    }
    expect(await events('--kind', 'ext_mine', '--kind', 'demo')).to.deep.equal([]);
  });

  it('writes CSV with a header, and a complete file or none', async () => {
    const file = join(directory.path, 'rows.csv');
    const { out, err } = await rows('csv', '--type', 'TaskCreated', '--output', file);
    expect(out).to.equal('');
    expect(err).to.include(`2 events to ${file}`);
    const text = readFileSync(file, 'utf8');
    expect(text).to.match(/^position,stream,revision,type,occurred_at,/);
    expect(text).to.include(`,"{""definition"":`);
    const again = await svc(['export', '--format', 'csv', '--output', file], {
      env: { SVC_DATA_DIR: directory.path },
    });
    expect(again.code).to.equal(5);
    expect(readFileSync(file, 'utf8')).to.equal(text);
    const stop = new AbortController();
    stop.abort();
    const broken = join(directory.path, 'broken.ndjson');
    const called = await svc(['export', '--format', 'ndjson', '--output', broken], {
      env: { SVC_DATA_DIR: directory.path },
      signal: stop.signal,
    });
    expect(called.code).to.equal(1);
    expect(readdirSync(directory.path).filter((name) => name.startsWith('broken'))).to.deep.equal(
      [],
    );
  });

  it('rejects incompatible options and creates no store', async () => {
    const nowhere = join(directory.path, 'nowhere');
    const wrong: readonly (readonly [readonly string[], number])[] = [
      [['export'], 2],
      [['export', 'x', '--type', 'Fired'], 2],
      [['export', 'x', '--format', 'csv'], 2],
      [['export', '--format', 'csv', '--state', 'failed'], 2],
      [['export', '--format', 'csv', '--of', 'runs', '--type', 'Fired'], 2],
      [['export', '--format', 'csv', '--since', 'soon'], 2],
      [['export', '--format', 'csv', '--task', 'report'], 2],
      [['export', '--format', 'csv', '--of', 'runs'], 5],
      [['export', '--format', 'csv', '--data-dir', nowhere], 2],
    ];
    for (const [words, code] of wrong) {
      const called = await svc(words, { env: { SVC_DATA_DIR: directory.path } });
      expect(called.code, words.join(' ')).to.equal(code);
    }
    expect(existsSync(nowhere)).to.equal(false);
  });
});

describe('the runs of a view, exported', () => {
  const noTasks = {
    pinnedTasks: {
      peek: () => undefined,
      at: (id: string) => Promise.reject(notFound('task', id)),
    },
    eventPayloads: { textOf: () => Promise.resolve(null) },
    secrets: noSecretValues,
  };

  /** A view with a number of runs, each with an error of the given size in bytes. It responds like a store. */
  function view(
    count: number,
    bytes = 0,
  ): { readonly readModel: ReadModel; readonly queries: ListQuery[] } {
    const log = new LogOfTest();
    for (let n = 0; n < count; n += 1) {
      log.add(`run-${String(n).padStart(5, '0')}`, 'RunRequested', request({ task_id: 'task-1' }));
    }
    log.add('run-00000', 'RunStarted', {
      worker: 'w',
      attempt: 1,
      leased_until: '2026-03-02T00:00:00.000Z',
    });
    log.add('run-00000', 'RunSucceeded', success());
    const runs = [...folded(runsProjection, log.events)].map(([key, document]) => ({
      key,
      text: JSON.stringify(bytes === 0 ? document : { ...document, error: 'x'.repeat(bytes) }),
    }));
    const queries: ListQuery[] = [];
    const list = async (_: unknown, query: ListQuery): Promise<Listed> => {
      queries.push(query);
      const { after, limit, mostBytes = Infinity } = query;
      const rest = after === undefined ? runs : runs.filter(({ key }) => key > after.key);
      const documents: ListedDocument[] = [];
      let sum = 0;
      for (const each of rest.slice(0, limit)) {
        sum += each.text.length;
        if (sum > mostBytes && documents.length > 0) break;
        documents.push(each);
      }
      const hasMore = documents.length < rest.length;
      return { documents, hasMore, total: null, position: BEGINNING };
    };
    const readModel = { list, count: async () => runs.length } as unknown as ReadModel;
    return { readModel, queries };
  }

  const textOf = async (format: 'csv' | 'ndjson', readModel: ReadModel): Promise<string> => {
    let text = '';
    for await (const part of exportRuns(readModel, format, { reach: '*' }, { params: noTasks }))
      text += part.text;
    return text;
  };

  it('are read by pages, each once', async () => {
    const { readModel, queries } = view(1_100);
    const lines = (await textOf('ndjson', readModel)).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as RunDocument).id)).to.have.lengthOf(1_100);
    expect(new Set(lines)).to.have.lengthOf(1_100);
    expect(queries.map(({ after }) => after?.key)).to.deep.equal([undefined, '00499', '00999']);
  });

  it('are read by small pages if each run is large', async () => {
    const { readModel, queries } = view(5, 1_500_000);
    const lines = (await textOf('ndjson', readModel)).trimEnd().split('\n');
    expect(lines).to.have.lengthOf(5);
    expect(queries.map(({ after }) => after?.key)).to.deep.equal([undefined, '00001', '00003']);
  });

  it('show their duration and lateness', async () => {
    const [head, first] = (await textOf('csv', view(1).readModel)).split('\r\n');
    const cells = Object.fromEntries((head ?? '').split(',').map((name, at) => [name, at]));
    const values = (first ?? '').split(',');
    expect(values[cells['state'] ?? -1]).to.equal('succeeded');
    expect(values[cells['seconds'] ?? -1]).to.equal('1');
    expect(Number(values[cells['late_seconds'] ?? -1])).to.be.lessThan(0);
  });
});

describe('the progress of an archive', () => {
  it('shows share, rate and time left', () => {
    expect(progressText(0.5, 50_000, 2)).to.equal(
      '[████████████░░░░░░░░░░░░]  50 %  50,000 events  25,000/s  2 s left',
    );
    expect(progressText(1, undefined, 2)).to.equal('[████████████████████████] 100 %');
  });
});
