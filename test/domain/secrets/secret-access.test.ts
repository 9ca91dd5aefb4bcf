import { expect } from 'chai';
import {
  LayeredSecrets,
  SecretError,
  type SecretSource,
} from '../../../domain/secrets/secret-source.ts';
import type { SecretUse } from '../../../domain/secrets/secret-access.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';
import { accessTo, plainSecrets, rejection } from '../../support/test-secrets.ts';

const user = { namespace: 'default', agentId: 'a', taskId: 't', runId: 'r', step: 's' };
const failing = (retryable: boolean): SecretSource => ({
  find: async () => {
    throw new SecretError('no', retryable);
  },
});

describe('the use of a secret', () => {
  it('is recorded with the user, and without the value', async () => {
    const uses: SecretUse[] = [];
    const access = accessTo(plainSecrets({ X: 'hush' }, { version: 3 }), uses);
    expect(await access.open('X', user)).to.include({ value: 'hush' });
    expect(uses[0]).to.deep.include(user);
    expect(uses[0]?.secret).to.include({ name: 'X', version: 3 });
  });

  it('is refused, and not recorded, for another task and for a missing secret', async () => {
    const uses: SecretUse[] = [];
    const access = accessTo(plainSecrets({ X: 'hush' }, { allowTasks: ['u'] }), uses);
    expect(await rejection(access.open('X', user))).to.be.instanceOf(SecretError);
    expect(await rejection(access.open('X', { ...user, taskId: null }))).to.be.instanceOf(
      SecretError,
    );
    const missing = await rejection(access.open('Y', user));
    expect(missing).to.be.instanceOf(PipelineError);
    expect(missing.message).to.equal('there is no secret Y in the namespace default');
    expect(uses).to.deep.equal([]);
  });
});

describe('an expired secret', () => {
  const expiresAt = Date.parse('2026-03-01T09:00:00Z');
  const source = plainSecrets({ X: 'hush' }, { expiresAt });
  const accessAt = (now: number, uses: SecretUse[] = []) =>
    accessTo(source, uses, { now: () => now });

  it('is given to nobody from that instant on, and its error is permanent', async () => {
    const uses: SecretUse[] = [];
    expect(await accessAt(expiresAt - 1).open('X', user)).to.include({ value: 'hush' });
    const error = await rejection(accessAt(expiresAt, uses).open('X', user));
    expect(error).to.be.instanceOf(SecretError).and.to.include({ retryable: false });
    expect(error.message).to.equal(
      'the secret X expired at 2026-03-01T09:00:00.000Z: ' +
        'set it again with a later expires_at, by PUT /secrets/X or svc secrets set X',
    );
    expect(uses).to.deep.equal([]);
  });

  it('is masked as before', async () => {
    const values = await accessAt(expiresAt + 1).values('default', ['X']);
    expect([...values]).to.deep.equal([['X', 'hush']]);
  });

  it('is not replaced by one of the same name in a later backend', async () => {
    const layered = new LayeredSecrets([source, plainSecrets({ X: 'older' })]);
    const access = accessTo(layered, [], { now: () => expiresAt });
    expect((await rejection(access.open('X', user))).message).to.include('the secret X expired');
  });
});

describe('the values to mask', () => {
  it('are the values of existing secrets', async () => {
    const values = await accessTo(plainSecrets({ X: 'hush' })).values('default', ['X', 'Y']);
    expect([...values]).to.deep.equal([['X', 'hush']]);
  });

  it('exclude a secret that the namespace may not use, because nobody received it', async () => {
    expect([...(await accessTo(failing(false)).values('default', ['X']))]).to.deep.equal([]);
  });

  it('are unknown while a backend is unavailable', async () => {
    const error = await rejection(accessTo(failing(true)).values('default', ['X']));
    expect(error).to.be.instanceOf(SecretError);
  });
});
