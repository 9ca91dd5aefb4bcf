import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { load } from '../../../../domain/handle.ts';
import { runFold } from '../../../../domain/runs/run.ts';
import { tokenHash } from '../../../../domain/ids.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { endedBy, waitingRun, type WaitingRun, type WaitsFor } from './waiting-run.ts';

describe('a callback', () => {
  const api = useRunningApi();
  const newToken = (): string => randomBytes(32).toString('base64url');
  const waiting = async (payload?: object): Promise<WaitingRun & { readonly token: string }> => {
    const token = newToken();
    const waits_for: WaitsFor = { kind: 'callback', token_hashes: [tokenHash(token)] };
    return { token, ...(await waitingRun(api(), waits_for, payload)) };
  };
  const client = () => api().admin.client.as(null);
  const resumedIn = async (stream: string) => {
    const events = await api().store.readStream(stream);
    return events.flatMap((event) => (event.type === 'RunStepResumed' ? [event] : []));
  };

  it('ends the wait with any JSON as the result, without a token of an agent', async () => {
    for (const body of [{ paid: true }, [1], 'text', 7, false, null]) {
      const { token, stream, run } = await waiting();
      const answer = await client().send('POST', `/callbacks/${token}`, {
        raw: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.at('details')).to.deep.equal({ run_id: run, step: 'pay' });
      const [resumed] = await resumedIn(stream);
      expect(resumed?.data).to.deep.include({ by: { kind: 'callback' }, result: body });
      const { state } = await load(api().store, stream, runFold);
      expect(state).to.include({ state: 'queued' });
    }
  });

  it('has the result null without a body', async () => {
    const { token, stream } = await waiting();
    expect((await client().post(`/callbacks/${token}`)).status).to.equal(200);
    expect((await resumedIn(stream))[0]?.data.result).to.equal(null);
  });

  it('counts once, and a second one is recorded and rejected with how the wait ended', async () => {
    const { token, stream, run } = await waiting();
    const answers = await Promise.all([
      client().post(`/callbacks/${token}`, { n: 1 }),
      client().post(`/callbacks/${token}`, { n: 2 }),
    ]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409]);
    const late = answers.find(({ status }) => status === 409);
    expect(late?.at('details')).to.deep.include({
      run_id: run,
      step: 'pay',
      resumed_by: 'callback',
    });
    expect(late?.textAt('message')).to.match(/^the step no longer waits: its callback arrived at /);
    expect(await resumedIn(stream)).to.have.lengthOf(1);
    await api().refusals.flush();
    const { client: auditor } = api().admin;
    const audit = await auditor.get(
      `/audit?actor=anonymous&outcome=refused&after=${await api().store.head()}`,
    );
    expect(audit.status, audit.text).to.equal(200);
    const entry = (audit.at('items') as readonly Record<string, unknown>[]).find(
      ({ refusal }) => (refusal as Record<string, unknown>)['run_id'] === run,
    );
    expect(entry).to.include({ action: 'POST /callbacks/{token}', actor: 'anonymous' });
    expect(entry?.['source']).to.match(/127\.0\.0\.1/);
    expect(entry?.['refusal']).to.include({ status: 409, step: 'pay', path: '/callbacks/***' });
  });

  for (const kind of ['timeout', 'stopped'] as const) {
    it(`that comes after the wait ended by ${kind} is rejected`, async () => {
      const { token, stream, wait } = await waiting();
      await api().append(stream, [endedBy(wait, kind)]);
      const answer = await client().post(`/callbacks/${token}`, {});
      expect(answer.status).to.equal(409);
      expect(answer.at('details.resumed_by')).to.equal(kind);
    });
  }

  it('that comes after the run was canceled is rejected', async () => {
    const { token, run } = await waiting();
    expect((await api().admin.client.post(`/runs/${run}/cancel`)).status).to.equal(200);
    const answer = await client().post(`/callbacks/${token}`, {});
    expect(answer.status).to.equal(409);
    expect(answer.at('details.resumed_by')).to.equal('stopped');
  });

  it('may arrive before its tool has returned', async () => {
    const token = newToken();
    const token_hashes = [tokenHash(token)];
    const calling = { kind: 'callback', token_hashes, calling: true } as const;
    const { stream, wait } = await waitingRun(api(), calling);
    expect((await client().post(`/callbacks/${token}`, { early: true })).status).to.equal(200);
    const [first] = (await api().store.readStream(stream)).flatMap((event) =>
      event.type === 'RunStepSuspended' ? [event.data] : [],
    );
    if (first === undefined) throw new Error('the step waits');
    const again = { ...first, waits_for: { kind: 'callback' as const, token_hashes } };
    await api().append(stream, [{ type: 'RunStepSuspended', data: again }]);
    const { state } = await load(api().store, stream, runFold);
    const [known] = 'request' in state ? state.waits : [];
    expect(known).to.deep.include({ wait_id: wait, step: 'pay' });
    expect(known?.resumed).to.deep.include({ result: { early: true } });
    expect((await client().post(`/callbacks/${token}`, {})).status).to.equal(409);
  });

  it('fails the step with an error', async () => {
    const { token, stream } = await waiting();
    const failing = { error: 'no money', retryable: true };
    expect((await client().post(`/callbacks/${token}/fail`, failing)).status).to.equal(200);
    const [resumed] = await resumedIn(stream);
    expect(resumed?.data).to.include(failing);
    expect(resumed?.data).not.to.have.property('result');
    expect((await client().post(`/callbacks/${token}`, {})).status).to.equal(409);
    const other = await waiting();
    await client().post(`/callbacks/${other.token}/fail`, { error: 'no' });
    expect((await resumedIn(other.stream))[0]?.data.retryable).to.equal(false);
  });

  it('with an unknown or malformed token is not found, and the token is not repeated', async () => {
    for (const token of [newToken(), 'short', `${newToken()}x`]) {
      for (const path of [`/callbacks/${token}`, `/callbacks/${token}/fail`]) {
        const answer = await client().post(path, { error: 'x' });
        expect(answer.status).to.equal(404);
        expect(answer.text).not.to.contain(token);
      }
      const unknown = await client().get(`/callbacks/${token}/other`);
      expect(unknown.status).to.equal(404);
      expect(unknown.text).not.to.contain(token);
    }
  });

  it('is unavailable, not unknown, while the view lags behind the log', async () => {
    const { token } = await waiting();
    await client().post(`/callbacks/${token}`, {});
    api().waiting.timesOut = true;
    try {
      expect((await client().post(`/callbacks/${newToken()}`, {})).status).to.equal(503);
    } finally {
      api().waiting.timesOut = false;
    }
  });

  it('has a limit, and must be JSON', async () => {
    const { token, stream } = await waiting();
    const json = { 'content-type': 'application/json' };
    const large = `"${'x'.repeat(1024 * 1024)}"`;
    const post = (raw: string, headers: Record<string, string> = json) =>
      client().send('POST', `/callbacks/${token}`, { raw, headers });
    expect((await post(large)).status).to.equal(413);
    expect((await post('{')).status).to.equal(400);
    expect((await post('x', { 'content-type': 'text/plain' })).status).to.equal(415);
    expect(await resumedIn(stream)).to.have.lengthOf(0);
    expect((await post(`"${'x'.repeat(256 * 1024 - 2)}"`)).status).to.equal(200);
  });

  it('masks the secrets of the pipeline and its own token before they reach the log', async () => {
    const secret = 'hush-hush-7';
    const pipeline = [
      { id: 'pay', uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
    ];
    const { token, stream } = await waiting({ pipeline });
    await client().post(`/callbacks/${token}`, { echoed: `key ${secret}`, url: `/x/${token}` });
    const [resumed] = await resumedIn(stream);
    expect(resumed?.data.result).to.deep.equal({ echoed: 'key ***', url: '/x/***' });
    const other = await waiting({ pipeline });
    await client().post(`/callbacks/${other.token}/fail`, { error: `bad ${secret}` });
    expect((await resumedIn(other.stream))[0]?.data.error).to.equal('bad ***');
  });

  it("masks them in the caller's reason, and does not record the reason of a late call", async () => {
    const pipeline = [
      { id: 'pay', uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
    ];
    const { token, stream } = await waiting({ pipeline });
    const headers = { 'x-reason': `hush-hush-7 for ${token}` };
    const call = () => client().send('POST', `/callbacks/${token}`, { headers });
    expect((await call()).status).to.equal(200);
    expect((await resumedIn(stream))[0]?.metadata.reason).to.equal('*** for ***');
    expect((await call()).status).to.equal(409);
    await client().send('POST', `/callbacks//${token}`, { headers });
    await api().refusals.flush();
    const events = JSON.stringify(await api().store.readAll('', 100_000));
    expect(events).not.to.contain(token);
    expect(events.split('hush-hush-7')).to.have.lengthOf(1);
    expect(api().logged.join('\n')).not.to.contain(token);
  });

  it('may be nested as deeply as JSON allows, without an internal error', async () => {
    const levels = 60_000;
    const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const { token } = await waiting();
    const answer = await client().send('POST', `/callbacks/${token}`, {
      raw: deep,
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status, answer.text).to.equal(400);
    expect((await client().post(`/callbacks/${token}`, {})).status).to.equal(200);
  });

  it('leaves its token out of logs, metrics and events', async () => {
    const { token, run } = await waiting();
    await client().post(`/callbacks/${token}`, {});
    await client().post(`/callbacks/${token}`, {});
    api().store.away = true;
    expect((await client().post(`/callbacks/${newToken()}`, {})).status).to.equal(503);
    api().store.away = false;
    await api().refusals.flush();
    expect(api().logged.join('\n')).not.to.contain(token);
    expect(await api().metricsText()).not.to.contain(token);
    const events = await api().store.readAll('', 100_000);
    expect(JSON.stringify(events)).not.to.contain(token);
    const { client: admin } = api().admin;
    for (const path of [`/runs/${run}`, '/runs', `/runs/${run}/history`]) {
      const { text } = await admin.get(path);
      expect(text, path).not.to.contain(token);
      expect(text, path).not.to.contain(tokenHash(token));
    }
  });

  it('is listed with the run that waits for it', async () => {
    const { run, wait } = await waiting();
    const after = await api().store.head();
    const shown = await api().admin.client.get(`/runs/${run}?after=${after}`);
    expect(shown.at('state')).to.equal('waiting');
    expect(shown.at('waits.0')).to.include({
      id: wait,
      step: 'pay',
      kind: 'callback',
      resumed_by: null,
    });
    const listed = await api().admin.client.get(`/runs?state=waiting&after=${after}`);
    const ids = (listed.at('items') as readonly { readonly id: string }[]).map(({ id }) => id);
    expect(ids).to.include(run);
  });
});
