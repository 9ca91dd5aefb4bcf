import { expect } from 'chai';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { auditOf } from '../../auditing.ts';
import { plainTask } from '../../plain-task.ts';

describe('the reasons in the audit', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  before(async () => {
    auditor = await api().signIn(['audit:read']);
  });
  const makeTask = async (): Promise<string> => {
    const { admin } = api();
    return (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
  };

  it('come from the body, which overrides the header', async () => {
    const { admin } = api();
    const id = await makeTask();
    const snooze = `/tasks/${id}/snooze`;
    const headers = { 'x-reason': 'general maintenance' };
    const orders: readonly (readonly [path: string, body: object, headers?: object])[] = [
      ['/operations/hold', { reason: 'a new mail server' }],
      ['/operations/release', { reason: 'it has arrived' }],
      ['/operations/hold', { reason: 'another one' }, headers],
      ['/operations/release', { missed: 'skip' }, headers],
      [snooze, { delay_seconds: 5, reason: 'not now' }, headers],
      [snooze, { delay_seconds: 5, reason: ' ' }, headers],
    ];
    for (const [path, body, sent = {}] of orders) {
      const answer = await admin.client.send('POST', path, { body, headers: { ...sent } });
      expect(answer.status, `${path} ${answer.text}`).to.equal(200);
    }
    // A refusal is recorded with the reason given for the refused request.
    await admin.client.post('/operations/hold', { reason: 'once' });
    await admin.client.post('/operations/hold', { reason: 'and again' });
    await admin.client.post('/operations/release');
    const items = await auditOf(api(), auditor, `actor=${admin.id}&limit=200`);
    const recorded = items
      .filter(({ type }) => /Operations|Snoozed|Refused/.test(type))
      .slice(0, orders.length + 3)
      .map(({ type, reason }) => `${type}: ${reason}`);
    expect(recorded.toReversed()).to.have.members([
      'OperationsHeld: a new mail server',
      'OperationsReleased: it has arrived',
      'OperationsHeld: another one',
      'OperationsReleased: general maintenance',
      'TaskSnoozed: not now',
      'TaskSnoozed: general maintenance',
      'OperationsHeld: once',
      'CommandRefused: and again',
      'OperationsReleased: null',
    ]);
  });

  it('are rejected in other bodies, with a message', async () => {
    const id = await makeTask();
    for (const command of ['pause', 'run_now']) {
      const path = `/tasks/${id}/${command}`;
      const refused = await api().admin.client.post(path, { reason: 'why not' });
      expect(refused.status, command).to.equal(400);
      expect(refused.at('details.issue')).to.equal('is not a known field; X-Reason takes a reason');
    }
  });
});
