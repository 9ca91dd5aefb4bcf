import { expect } from 'chai';
import type { Secret } from '../../../domain/secrets/secret-source.ts';
import type { SecretUse } from '../../../domain/secrets/secret-access.ts';
import { addressOf } from '../../../scheduler/webhooks/webhook-address.ts';
import { accessTo, plainSecrets } from '../../support/test-secrets.ts';

const user = { namespace: 'default', agentId: 'a', taskId: 't', runId: 'r', step: null };
const VALUE = 'T01/B02/hush-hush';

describe('the address of a webhook', () => {
  const uses: SecretUse[] = [];
  const filled = (url: string, limits: Partial<Secret> = {}, value = VALUE) =>
    addressOf(url, accessTo(plainSecrets({ X: value }, limits), uses), user);

  it('without secrets is itself', async () => {
    const address = await filled('https://a.example/x');
    expect(address).to.include({ url: 'https://a.example/x' });
    expect(uses).to.deep.equal([]);
  });

  it('contains its secrets, whose use is recorded and which its mask hides', async () => {
    const address = await filled('https://a.example/${secrets.X}?k=${secrets.X}');
    if ('error' in address) throw new Error(address.error);
    expect(address.url).to.equal(`https://a.example/${VALUE}?k=${VALUE}`);
    expect(address.mask(`no ${VALUE}`)).to.equal('no ***');
    expect(uses).to.have.lengthOf(1);
    expect(uses[0]).to.deep.include({ ...user });
  });

  for (const [what, limits, message] of [
    [
      'may not be sent to any host',
      { allowHosts: [] },
      'the secret X may not be sent to any host: allow it',
    ],
    [
      'may be sent to other hosts',
      { allowHosts: ['b.example'] },
      'the secret X may not be sent to a.example: allow it',
    ],
    [
      'belongs to other tasks',
      { allowTasks: ['other'] },
      'the task t may not use the secret X: it is not in its allow_tasks',
    ],
    [
      'has expired',
      { expiresAt: 0 },
      'the secret X expired at 1970-01-01T00:00:00.000Z: ' +
        'set it again with a later expires_at, by PUT /secrets/X or svc secrets set X',
    ],
  ] as const) {
    it(`is rejected with a secret that ${what}`, async () => {
      const address = await filled('https://a.example/${secrets.X}', limits);
      expect(address).to.deep.equal({ error: message });
    });
  }

  it('is rejected with a missing secret', async () => {
    const address = await filled('https://a.example/${secrets.Y}');
    expect(address).to.deep.equal({ error: 'there is no secret Y in the namespace default' });
  });

  it('keeps its host, whatever the secret is', async () => {
    for (const value of [
      '//evil.example/',
      '@evil.example',
      '\\\\evil.example',
      '..//evil.example',
    ]) {
      const address = await filled('https://a.example/${secrets.X}', {}, value);
      if ('error' in address) continue;
      expect(new URL(address.url).host).to.equal('a.example');
    }
  });
});
