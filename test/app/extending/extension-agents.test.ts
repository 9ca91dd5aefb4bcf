import { expect } from 'chai';
import { ExtensionAgents } from '../../../app/extending/extension-agents.ts';
import { Supervisor } from '../../../app/roles/supervisor.ts';
import { followIndexes } from '../../../app/roles/live-indexes.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveQuotas } from '../../../projections/reading/live-quotas.ts';
import { RunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';

const extension = { id: 'mail', granted: [] };

describe("an extension's own agent", () => {
  let api: RunningApi;
  let supervisor: Supervisor;
  beforeEach(async () => {
    api = await RunningApi.start();
    supervisor = new Supervisor(api.clock, createTelemetry({ level: 'silent' }));
  });
  afterEach(async () => {
    await supervisor.end();
    await api.close();
  });

  const agentsOf = async (tokenSeconds: number): Promise<ExtensionAgents> => {
    const { store, readModel, clock, settings } = api;
    const quotas = new LiveQuotas(store, undefined, silent.failures);
    const indexes = followIndexes(store, readModel, supervisor, quotas);
    await eventually(() => supervisor.notRunning().length === 0);
    const { signal } = supervisor;
    return new ExtensionAgents({
      store,
      indexes,
      clock,
      signal,
      tokenSeconds,
      keys: settings.tokenKeys,
      quotaParts: {
        store,
        readModel,
        clock,
        quotas,
        telemetry: silent,
        coordination: api.coordination,
        positions: { wait: () => true },
      },
      causation: { present: null, depthAfter: async () => 0 },
    });
  };
  const statusBy = async (token: string): Promise<number> =>
    (await api.admin.client.as(token).get('/tasks')).status;
  const sessions = (): number =>
    api.store.appended.filter((stream) => stream.startsWith('session-')).length;

  it('uses one token as long as it is valid', async () => {
    const agents = await agentsOf(3600);
    const token = await agents.tokenOf(extension);
    expect(await agents.tokenOf(extension)).to.equal(token);
    expect(await statusBy(token)).to.equal(200);
    expect(sessions()).to.equal(1);
  });

  it('uses one token even for many concurrent calls', async () => {
    const agents = await agentsOf(3600);
    const tokens = await Promise.all(Array.from({ length: 20 }, () => agents.tokenOf(extension)));
    expect(new Set(tokens)).to.have.lengthOf(1);
    expect(sessions()).to.equal(1);
  });

  it('uses another token after its sessions have ended', async () => {
    const agents = await agentsOf(3600);
    const token = await agents.tokenOf(extension);
    const id = await agents.idOf(extension);
    expect((await api.admin.client.post(`/agents/${id}/credentials`)).status).to.equal(200);
    expect(await statusBy(token)).to.equal(401);
    await eventually(async () => (await agents.tokenOf(extension)) !== token);
    const next = await agents.tokenOf(extension);
    expect(await statusBy(next)).to.equal(200);
    await api.admin.client.post('/agents/auth/revoke', { token: next });
    await eventually(async () => (await agents.tokenOf(extension)) !== next);
    expect(await statusBy(await agents.tokenOf(extension))).to.equal(200);
    expect(sessions()).to.equal(4);
  });

  it('does not start a session for each call if tokens last a minute', async () => {
    const agents = await agentsOf(60);
    const token = await agents.tokenOf(extension);
    expect(await agents.tokenOf(extension)).to.equal(token);
    api.clock.shift(45_000);
    const next = await agents.tokenOf(extension);
    expect(next).to.not.equal(token);
    expect(await statusBy(next)).to.equal(200);
  });

  it('does not publish a number that JSON or its readers would change', async () => {
    const agents = await agentsOf(3600);
    for (const [data, field] of [
      [{ a: [{ n: Infinity }] }, 'data.a.0.n'],
      [{ id: 2 ** 53 }, 'data.id'],
    ] as const) {
      const refused = await agents.publish(extension, 'a', data).catch((error: unknown) => error);
      expect(refused).to.deep.include({ code: 'bad_request' });
      expect(refused).to.have.nested.property('details.field', field);
    }
    expect(await agents.publish(extension, 'a', { id: 2 ** 53 - 1, n: null })).to.be.a('string');
  });
});
