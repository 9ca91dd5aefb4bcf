import { expect } from 'chai';
import { checkSealedSecrets } from '../../../app/doctor/secret-checks.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the check of secrets', () => {
  const api = useRunningApi();
  const directory = useTemporaryDirectory();

  const expiredAt = async (now: number) => {
    const configuration = { secrets: { keys: undefined }, dataDirectory: directory() };
    const found = await checkSealedSecrets(api(), configuration, now);
    return found.filter(({ check }) => check === 'expired secrets');
  };

  it('warns of those that have expired', async () => {
    const { client } = api().admin;
    const at = Date.parse('2090-01-01T00:00:00.000Z');
    await client.put('/secrets/LASTING', { value: 'hush' });
    for (const name of ['A', 'B']) {
      await client.put(`/secrets/${name}`, { value: 'hush', expires_at: '2090-01-01T00:00:00Z' });
    }
    await client.get(`/secrets?after=${await api().store.head()}`);
    expect(await expiredAt(at - 1)).to.deep.equal([]);
    expect(await expiredAt(at)).to.deep.equal([
      {
        check: 'expired secrets',
        verdict: 'warn',
        found: 'default/A expired at 2090-01-01T00:00:00.000Z and 1 more',
        advice: 'set it again, or delete it: steps that use it fail',
      },
    ]);
  });
});
