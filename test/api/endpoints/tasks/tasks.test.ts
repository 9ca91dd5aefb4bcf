import { expect } from 'chai';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';

const HOUR = 3_600_000;

describe('the tasks of the HTTP interface', () => {
  const api = useRunningApi();

  it('creates a task with its defaults, its address and its ETag', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    expect(created.status).to.equal(201);
    const id = created.textAt('id');
    expect(created.header('Location')).to.equal(`/tasks/${id}`);
    expect(created.header('ETag')).to.equal('"0"');
    expect(created.header('X-Event-Position')).to.match(/^[0-9a-f]+$/);
    expect(created.json).to.include({
      title: 'Nightly',
      status: 'active',
      timezone: 'UTC',
      priority: 5,
      max_retries: 3,
      backoff_strategy: 'exponential_jitter',
      overlap_policy: 'allow',
      misfire_policy: 'latest',
      dedupe_key: null,
      last_run_at: null,
      exhausted: false,
      revision: 0,
    });
    expect(created.at('warnings')).to.deep.equal([]);
    expect(Date.parse(created.textAt('next_run_at'))).to.be.greaterThan(Date.now());
  });

  it('shows a created task at once, exactly as its creation returned it', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const shown = await admin.client.get(created.header('Location'));
    expect(shown.status).to.equal(200);
    expect(shown.json).to.deep.equal(created.json);
    expect(shown.header('ETag')).to.equal(created.header('ETag'));
    expect(shown.header('X-Read-Position') >= created.header('X-Event-Position')).to.equal(true);
  });

  it('accepts ids in capitals', async () => {
    const { admin } = api();
    const body = plainTask(admin.id.toUpperCase());
    const created = await admin.client.post('/tasks', body);
    expect(created.at('created_by')).to.equal(admin.id);
    const shown = await admin.client.get(`/tasks/${created.textAt('id').toUpperCase()}`);
    expect(shown.json).to.deep.equal(created.json);
    const listed = await admin.client.get(`/tasks?created_by=${admin.id.toUpperCase()}&limit=1`);
    expect(listed.at('items.0.id')).to.equal(created.at('id'));
  });

  it("stores instants in UTC, and reads them in the task's zone if they have no offset", async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', {
      ...plainTask(admin.id),
      timezone: 'America/New_York',
      starts_at: '2090-01-01T00:00',
      ends_at: '2091-01-01T00:00:00+02:00',
    });
    expect(created.at('starts_at')).to.equal('2090-01-01T05:00:00.000Z');
    expect(created.at('ends_at')).to.equal('2090-12-31T22:00:00.000Z');
  });

  it('rejects keys that are not well-formed Unicode, because two of them could collide', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const task = created.header('Location');
    for (const field of ['concurrency_key', 'dedupe_key']) {
      for (const key of ['orders-\ud800', '\udfff']) {
        const issue = { field, issue: 'must be a string of well-formed Unicode' };
        const refused = [
          await admin.client.post('/tasks', { ...plainTask(admin.id), [field]: key }),
          await admin.client.put(task, { [field]: key }),
        ];
        for (const { status, json } of refused) {
          expect(status).to.equal(400);
          expect(json).to.have.nested.property('details.issues').that.deep.equals([issue]);
        }
      }
      const { status } = await admin.client.put(task, { [field]: 'orders-\u{1f680}' });
      expect(status).to.equal(200);
    }
  });

  it('accepts an unregistered tool, and warns', async () => {
    const { admin } = api();
    const payload = { pipeline: [{ uses: 'weather.lookup', with: { city: 'Oslo' } }] };
    const created = await admin.client.post('/tasks', { ...plainTask(admin.id), payload });
    expect(created.status).to.equal(201);
    expect(created.textAt('warnings.0')).to.contain('weather.lookup');
    const shown = await admin.client.get(created.header('Location'));
    expect(shown.at('warnings')).to.deep.equal(created.at('warnings'));
  });

  it("warns with each task that DTSTART's own zone overrides the task's", async () => {
    const { client, id: created_by } = api().admin;
    const made = await client.post('/tasks', {
      ...plainTask(created_by),
      schedule_kind: 'rrule',
      schedule_expr: 'DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=DAILY',
      timezone: 'europe/BERLIN',
      payload: { pipeline: [{ uses: 'weather.lookup' }] },
    });
    expect(made.status, made.text).to.equal(201);
    const of = "schedule_expr: DTSTART's zone America/New_York is used, not the timezone";
    const tool = made.textAt('warnings.1');
    expect(tool).to.contain('weather.lookup');
    expect(made.at('warnings')).to.deep.equal([`${of} europe/BERLIN`, tool]);
    const path = made.header('Location');
    expect((await client.get(path)).at('warnings')).to.deep.equal(made.at('warnings'));
    const listed = await client.get('/tasks?limit=1');
    expect(listed.at('items.0.warnings')).to.deep.equal(made.at('warnings'));
    const other = await client.put(path, { timezone: 'Europe/Berlin' });
    expect(other.at('warnings')).to.deep.equal([`${of} Europe/Berlin`, tool]);
    const same = await client.put(path, { timezone: 'America/New_York' });
    expect(same.at('warnings')).to.deep.equal([tool]);
    const shown = await client.get(path);
    expect(shown.at('warnings')).to.deep.equal([tool]);
  });

  it('warns that bounds of the schedule do not affect an event task', async () => {
    const { client, id: created_by } = api().admin;
    const bounds = { starts_at: '2090-01-01T00:00:00Z', max_runs: 1, jitter_seconds: 5 };
    const fields = { schedule_kind: 'event', schedule_expr: 'orders.#', ...bounds };
    const made = await client.post('/tasks', { ...plainTask(created_by), ...fields });
    expect(made.status, made.text).to.equal(201);
    for (const [index, field] of Object.keys(bounds).entries()) {
      expect(made.textAt(`warnings.${index}`)).to.match(new RegExp(`^${field}: has no effect`));
    }
    const path = made.header('Location');
    expect((await client.get(path)).at('warnings')).to.deep.equal(made.at('warnings'));
    const none = await client.put(path, { starts_at: null, max_runs: null, jitter_seconds: 0 });
    expect(none.at('warnings')).to.deep.equal([]);
  });

  it('lists tasks newest first, with filters', async () => {
    const { admin } = api();
    const owner = await api().signIn(['tasks:read', 'tasks:write']);
    const task = plainTask(owner.id);
    const ids: string[] = [];
    for (const extra of [{ tags: ['a'] }, { title: 'Hourly Report' }, { schedule_kind: 'event' }]) {
      const created = await owner.client.post('/tasks', {
        ...task,
        ...extra,
        schedule_expr: extra.schedule_kind ? 'a.*' : task.schedule_expr,
      });
      ids.unshift(created.textAt('id'));
    }
    await owner.client.post(`/tasks/${ids[2]}/pause`);
    const listed = async (query: string): Promise<unknown[]> => {
      const answer = await owner.client.get(`/tasks?created_by=${owner.id}${query}`);
      expect(answer.status, answer.text).to.equal(200);
      return (answer.at('items') as { id: string }[]).map(({ id }) => ids.indexOf(id));
    };
    expect(await listed('')).to.deep.equal([0, 1, 2]);
    expect(await listed('&status=paused')).to.deep.equal([2]);
    expect(await listed('&schedule_kind=event')).to.deep.equal([0]);
    expect(await listed('&tag=a')).to.deep.equal([2]);
    expect(await listed('&search=report')).to.deep.equal([1]);
    const envelope = await admin.client.get(`/tasks?created_by=${owner.id}&limit=2&offset=1`);
    expect(envelope.json).to.include({
      total: 3,
      limit: 2,
      offset: 1,
      has_more: false,
      next_cursor: null,
    });
  });

  it('changes only the given fields', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const path = created.header('Location');
    const changed = await admin.client.put(
      path,
      { title: 'Weekly', tags: ['x'] },
      { headers: { 'if-match': '"0"' } },
    );
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.header('ETag')).to.equal('"1"');
    const { updated_at: _then, ...before } = created.json as Record<string, unknown>;
    const { updated_at: _now, ...after } = changed.json as Record<string, unknown>;
    expect(after).to.deep.equal({ ...before, title: 'Weekly', tags: ['x'], revision: 1 });
    expect((await admin.client.get(path)).json).to.deep.equal(changed.json);
  });

  it('records nothing for a change without effect', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const same = await admin.client.put(created.header('Location'), { title: 'Nightly' });
    expect(same.status).to.equal(200);
    expect(same.header('ETag')).to.equal('"0"');
    expect(same.json).to.deep.equal(created.json);
    expect(same.header('X-Event-Position')).to.equal(created.header('X-Event-Position'));
  });

  it('reports the next fire after a change by its schedule state, not as of the creation', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const id = created.textAt('id');
    const nominal = created.textAt('next_run_at');
    const next_fire_at = new Date(Date.parse(nominal) + HOUR).toISOString();
    await api().append(streams.fires(id), [
      {
        type: 'Fired',
        data: { nominal, run_id: id, next_fire_at, task_revision: 0, fire_count: 1 },
      },
    ]);
    const renamed = await admin.client.put(`/tasks/${id}`, { title: 'Renamed' });
    expect(renamed.at('next_run_at')).to.equal(next_fire_at);
    expect((await admin.client.get(`/tasks/${id}`)).at('next_run_at')).to.equal(next_fire_at);
  });

  it('resets the next fire with the schedule', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    const changed = await admin.client.put(created.header('Location'), {
      schedule_kind: 'once',
      schedule_expr: '2090-05-01T12:00:00+02:00',
    });
    expect(changed.at('next_run_at')).to.equal('2090-05-01T10:00:00.000Z');
  });
});
