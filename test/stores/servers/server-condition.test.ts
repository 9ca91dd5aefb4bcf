import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import { ServerCondition } from '../../../stores/servers/server-condition.ts';
import { ServerWords } from '../../../stores/servers/server-words.ts';
import { reportingTo } from '../../support/reporting-to.ts';

describe('the condition of a server', () => {
  const words = new ServerWords({
    product: 'EventStoreDB',
    hosts: 'log:2113',
    user: 'ops',
    setting: 'SVC_EVENT_STORE_URL',
    forbidden: (operation) => operation,
    grant: 'use a member of $admins',
    leaderless: 'no_leader',
  });
  const denied = new Error('denied');
  let now: number;
  let condition: ServerCondition;
  let lines: string[];
  beforeEach(() => {
    now = 0;
    lines = [];
    const note = (message: string): void => void lines.push(message);
    const telemetry = reportingTo({ info: note, warn: note, error: note }, () => now);
    condition = new ServerCondition(
      words,
      telemetry,
      () => [],
      () => now,
    );
  });

  it('blocks all operations while the user is rejected, except for a retry after 5 s and then every 30 s', () => {
    const tries: number[] = [];
    condition.rejected(denied);
    for (; now < 100_000; now += 500) {
      if (condition.blocking('append events') !== null) continue;
      tries.push(now / 1_000);
      condition.rejected(denied);
    }
    expect(tries).to.deep.equal([5, 35, 65, 95]);
    expect(condition.lasting?.kind).to.equal('user_rejected');
  });

  it('blocks only the operation that lacks a right', () => {
    condition.forbidden('read the whole log', denied);
    expect(condition.blocking('read the whole log')?.message).to.equal(
      'EventStoreDB at log:2113 rejected user `ops`: it may not read the whole log',
    );
    expect(condition.blocking('append events')).to.equal(null);
    condition.worked('append events');
    expect(condition.blocking('read the whole log')?.remedy).to.equal('use a member of $admins');
    expect(lines).to.have.length(1);
    condition.worked('read the whole log');
    expect(condition.lasting).to.equal(null);
    expect(lines[1]).to.equal('EventStoreDB at log:2113 can be used again');
  });

  it('blocks nothing after the first success of any operation if the user was rejected', () => {
    condition.rejected(denied);
    condition.worked('append events');
    expect(condition.blocking('read the whole log')).to.equal(null);
    expect(lines).to.have.length(2);
  });

  it('blocks nothing while the server is unavailable, which can end at any time', async () => {
    const gone = await condition.unreachable(new Error('gone'), 0, 'connection_refused');
    expect(gone.lasting).to.equal(false);
    expect(condition.blocking('append events')).to.equal(null);
    expect(condition.lasting).to.equal(null);
  });

  it('hides the name of the user from readers without credentials', () => {
    const { message, summary } = condition.rejected(denied);
    expect(message).to.include('`ops`');
    expect(summary).to.equal(
      'EventStoreDB at log:2113 rejected the user: unknown user or wrong password',
    );
  });

  it('is connection_refused when none of several hosts can be reached', async () => {
    const closed = { host: '127.0.0.1', port: 1, tls: null, greeting: Buffer.from('?') };
    const gone = new ServerCondition(words, silent, () => [closed, closed]);
    const problem = await gone.unreachable(new Error('Failed to discover'), 2_000);
    expect(problem.kind).to.equal('connection_refused');
    expect(gone.blocking('append events')).to.equal(null);
    await gone.close();
  });
});
