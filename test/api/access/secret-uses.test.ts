import { expect } from 'chai';
import { SecretUses } from '../../../api/access/secret-uses.ts';
import { idOf, streams } from '../../../domain/streams.ts';
import type { SecretUse } from '../../../domain/secrets/secret-access.ts';
import { useRunningApi } from '../../support/running-api.ts';

describe('uses of secrets', () => {
  const api = useRunningApi();
  const use = (agentId: string, runId: string): SecretUse => ({
    namespace: 'default',
    agentId,
    taskId: agentId,
    runId,
    step: 'a',
    secret: { name: 'X', version: 2, source: 'store' },
  });

  it('are recorded, with one sum for those beyond thirty a minute, and shown in the audit and with the secret', async () => {
    const { store, clock, admin } = api();
    await admin.client.put('/secrets/X', { value: 'hush-hush' });
    const failures = { failed: () => {}, worked: () => {} };
    const telemetry = { log: { error: () => {} }, failures } as never;
    const uses = new SecretUses({ store, clock, telemetry }, 'worker-1');
    for (let n = 0; n < 40; n += 1) uses.used(use(admin.id, admin.id));
    await uses.close();
    const day = new Date(clock.now()).toISOString().slice(0, 10);
    const events = await store.readStream(streams.secretUses(admin.id, day));
    const counts = events.map(({ data }) => (data as { count: number }).count);
    expect(counts).to.deep.equal([...Array.from({ length: 30 }, () => 1), 10]);
    expect(events[0]?.data).to.include({
      name: 'X',
      secret_version: 2,
      run_id: admin.id,
      step: 'a',
      secret_id: idOf(streams.secret('default', 'X')),
    });
    expect(events.at(-1)?.data).to.include({ run_id: null, step: null, task_id: admin.id });
    const after = await store.head();
    const shown = await admin.client.get(`/secrets?after=${after}`);
    expect(shown.at('items.0.last_used')).to.include({ version: 2, task_id: admin.id });
    const audit = await admin.client.get(`/audit?type=SecretUsed&limit=1&after=${after}`);
    expect(audit.at('items.0.use')).to.include({ name: 'X', count: 10, run_id: null });
  });
});
