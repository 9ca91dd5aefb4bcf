import { expect } from 'chai';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { agentIn } from '../../namespaces/agent-in.ts';
import { endedBy, waitingRun, type WaitingRun } from './waiting-run.ts';

describe('an approval', () => {
  const api = useRunningApi();
  let approver: SignedIn;
  let reader: SignedIn;
  before(async () => {
    approver = await api().signIn(['approvals:write', 'tasks:read'], 'ada');
    reader = await api().signIn(['tasks:read'], 'bob');
  });

  const asked = (approvers?: readonly string[]): Promise<WaitingRun> =>
    waitingRun(api(), {
      kind: 'approval',
      message: 'Pay?',
      ...(approvers === undefined ? {} : { approvers: [...approvers] }),
      on_timeout: 'fail',
    });
  const endOf = async (stream: string) => {
    const events = await api().store.readStream(stream);
    return events.flatMap((event) => (event.type === 'RunStepResumed' ? [event.data] : []));
  };
  const shown = async (id: string) =>
    (await reader.client.get(`/approvals/${id}?after=${await api().store.head()}`)).json;

  it('is listed with all its fields', async () => {
    const { wait, run, task } = await asked(['scope:payments']);
    const approval = await shown(wait);
    expect(approval).to.deep.include({
      id: wait,
      run_id: run,
      task_id: task,
      step: 'pay',
      message: 'Pay?',
      approvers: ['scope:payments'],
      approver_names: [null],
      state: 'pending',
      decided_by: null,
      decided_by_name: null,
      decided_at: null,
      comment: null,
    });
    expect(Object.keys(approval)).to.have.members([
      ...['id', 'run_id', 'task_id', 'step', 'message', 'approvers', 'approver_names', 'state'],
      ...['requested_at', 'expires_at', 'decided_by', 'decided_by_name', 'decided_at', 'comment'],
    ]);
    const page = await reader.client.get(`/approvals?state=pending&run_id=${run}`);
    expect(page.at('items')).to.deep.equal([approval]);
    expect(page.at('total')).to.equal(1);
  });

  it('is listed by state, task and run, newest first, page by page', async () => {
    const made = [await asked(), await asked(), await asked()];
    const [first] = made;
    await approver.client.post(`/approvals/${first?.wait ?? ''}/approve`);
    const after = await api().store.head();
    const idsOf = async (query: string): Promise<readonly string[]> => {
      const page = await reader.client.get(`/approvals?after=${after}&${query}`);
      return (page.at('items') as readonly { readonly id: string }[]).map(({ id }) => id);
    };
    expect((await idsOf('limit=3')).toReversed()).to.deep.equal(made.map(({ wait }) => wait));
    expect(await idsOf('state=approved&limit=1')).to.deep.equal([first?.wait]);
    expect(await idsOf(`task_id=${first?.task ?? ''}`)).to.deep.equal([first?.wait]);
    expect(await idsOf(`task_id=${first?.task ?? ''}&state=pending`)).to.deep.equal([]);
    const page = await reader.client.get(`/approvals?limit=1&after=${after}`);
    const next = await idsOf(`limit=1&cursor=${page.textAt('next_cursor')}`);
    expect(next).to.deep.equal([made[1]?.wait]);
  });

  it('ends the wait with the name of the approver and the reason', async () => {
    const { wait, stream, run, task } = await asked();
    const answer = await approver.client.post(`/approvals/${wait}/approve`, { comment: 'fine' });
    expect(answer.status, answer.text).to.equal(200);
    const decided = { approval_id: wait, run_id: run, task_id: task, step: 'pay' };
    expect(answer.at('details')).to.deep.equal({ ...decided, state: 'approved' });
    const [end] = await endOf(stream);
    expect(end?.by).to.deep.equal({ kind: 'approval', agent_id: approver.id });
    expect(end?.result).to.deep.include({ approved: true, by: approver.id, comment: 'fine' });
    expect(end).not.to.have.property('error');
    const approval = await shown(wait);
    expect(approval).to.include({ state: 'approved', decided_by: approver.id, comment: 'fine' });
    expect(approval['decided_at']).to.be.a('string');
  });

  it('names its approvers and who decided, but no agent of another namespace', async () => {
    await api().admin.client.post('/namespaces', { name: 'elsewhere' });
    const foreign = await agentIn(api(), 'elsewhere', ['tasks:read'], 'a stranger');
    const { wait } = await asked([approver.id, foreign.id, 'scope:payments']);
    await approver.client.post(`/approvals/${wait}/approve`);
    const { name } = (await api().admin.client.get(`/agents/${approver.id}`)).json;
    const approval = await shown(wait);
    expect(approval['approver_names']).to.deep.equal([name, null, null]);
    expect(approval['decided_by_name']).to.equal(name);
  });

  it('masks the secrets of the pipeline in what the approver says', async () => {
    const payload = {
      pipeline: [
        { id: 'pay', uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
      ],
    };
    const waits_for = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;
    for (const [decision, said] of [
      ['approve', 'by hush-hush-7'],
      ['reject', 'no hush-hush-7'],
    ] as const) {
      const { wait, stream } = await waitingRun(api(), waits_for, payload);
      const { status } = await approver.client.send('POST', `/approvals/${wait}/${decision}`, {
        body: { comment: said },
        headers: { 'x-reason': said },
      });
      expect(status).to.equal(200);
      const events = JSON.stringify(await api().store.readStream(stream));
      expect(events).to.contain(said.replace('hush-hush-7', '***'));
      expect(events).not.to.contain('hush-hush-7');
    }
  });

  it('fails the step when it is rejected, without a retry', async () => {
    const { wait, stream } = await asked();
    const answer = await approver.client.post(`/approvals/${wait}/reject`, { comment: 'no' });
    expect(answer.status).to.equal(200);
    const [end] = await endOf(stream);
    expect(end).to.include({ error: 'rejected by ada: no', retryable: false });
    expect(end?.result).to.deep.include({ approved: false, comment: 'no' });
    expect(await shown(wait)).to.include({ state: 'rejected', comment: 'no' });
    const bare = await asked();
    await approver.client.post(`/approvals/${bare.wait}/reject`);
    expect((await endOf(bare.stream))[0]?.error).to.equal('rejected by ada');
  });

  it('is decided once, even by two agents at a time, and the refused decision is recorded', async () => {
    const { wait, stream, run } = await asked();
    const answers = await Promise.all([
      approver.client.post(`/approvals/${wait}/approve`),
      approver.client.post(`/approvals/${wait}/reject`),
    ]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409]);
    expect(await endOf(stream)).to.have.lengthOf(1);
    const late = answers.find(({ status }) => status === 409);
    expect(late?.at('details')).to.include({ resumed_by: 'approval', agent_id: approver.id });
    await api().refusals.flush();
    const query = `actor=${approver.id}&outcome=refused&after=${await api().store.head()}`;
    const audit = await api().admin.client.get(`/audit?${query}`);
    expect(audit.at('items.0.refusal')).to.include({ status: 409, run_id: run, step: 'pay' });
  });

  it('cannot be decided by agents without permission', async () => {
    const { wait, stream } = await asked();
    const answer = await reader.client.post(`/approvals/${wait}/approve`);
    expect(answer.status).to.equal(403);
    expect(answer.at('details.required_scopes')).to.deep.equal(['approvals:write']);
    const named = await asked([reader.id]);
    expect((await approver.client.post(`/approvals/${named.wait}/approve`)).status).to.equal(403);
    expect((await api().admin.client.post(`/approvals/${named.wait}/approve`)).status).to.equal(
      403,
    );
    expect((await reader.client.post(`/approvals/${named.wait}/approve`)).status).to.equal(200);
    const byScope = await asked(['scope:payments']);
    expect((await approver.client.post(`/approvals/${byScope.wait}/reject`)).status).to.equal(403);
    const payer = await api().signIn(['payments']);
    expect((await payer.client.post(`/approvals/${byScope.wait}/reject`)).status).to.equal(200);
    expect(await endOf(stream)).to.have.lengthOf(0);
  });

  it('can no longer be decided once it has expired, or its run was canceled', async () => {
    const expired = await asked();
    await api().append(expired.stream, [endedBy(expired.wait, 'timeout')]);
    const canceled = await asked();
    await api().admin.client.post(`/runs/${canceled.run}/cancel`);
    for (const [{ wait }, state] of [
      [expired, 'expired'],
      [canceled, 'canceled'],
    ] as const) {
      const answer = await approver.client.post(`/approvals/${wait}/approve`);
      expect(answer.status, state).to.equal(409);
      expect(await shown(wait)).to.include({ state, decided_by: null, decided_at: null });
    }
  });

  it('has one effect for one Idempotency-Key', async () => {
    const { wait, stream } = await asked();
    const headers = { 'idempotency-key': 'once' };
    for (const _ of [1, 2]) {
      const answer = await approver.client.post(`/approvals/${wait}/approve`, {}, { headers });
      expect(answer.status, answer.text).to.equal(200);
    }
    expect(await endOf(stream)).to.have.lengthOf(1);
  });
});
