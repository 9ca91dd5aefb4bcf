import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import { plainTask } from '../../api/plain-task.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('svc backfills', () => {
  const api = useRunningApi();

  const call = (...words: readonly string[]): Promise<Called> =>
    svc(words, { env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' } });

  it('lists, shows and cancels backfills', async () => {
    const { client, id } = api().admin;
    const body = { ...plainTask(id), schedule_expr: '0 * * * *' };
    const task = (await client.post('/tasks', body)).textAt('id');
    expect((await call('backfills', 'list', task)).out).to.equal('no backfills\n');
    const span = ['--from', '2026-01-01T00:30Z', '--to', '2026-01-01T03:30Z', '--only', 'all'];
    const asked = await call('tasks', 'backfill', task, ...span, '--param', 'limit=5');
    const [, backfill = ''] = /\nbackfill_id +(\S+)\n/.exec(asked.out) ?? [];

    const listed = await call('backfills', 'ls', task);
    expect(listed.out).to.match(
      new RegExp(`\n${backfill} +running +2026-01-01 00:30:00Z +2026-01-01 03:30:00Z +3 +0 `),
    );
    const shown = await call('backfills', 'show', backfill);
    expect(shown.out).to.match(
      new RegExp(`^id +${backfill}\ntask +${task}, revision 0\nstate +running\n`),
    );
    expect(shown.out).to.match(/\ntimes +3 \(all\)\ndecided +none\nparams +\{"limit":5\}\n/);
    expect((await call('backfills', 'cancel', backfill)).out).to.equal(
      'the backfill is canceled\n',
    );
    const canceled = await call('backfills', 'show', backfill);
    expect(canceled.out).to.match(/\nstate +canceled \(request\)\n/);
    expect((await call('backfills', 'show', backfill, '--json')).json).to.include({
      id: backfill,
      state: 'canceled',
    });
    expect((await call('backfills', 'show', newId(0))).code).to.equal(3);
    expect((await call('backfills')).code).to.equal(2);
  });
});
