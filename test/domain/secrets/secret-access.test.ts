import { expect } from 'chai';
import { SecretError, type SecretSource } from '../../../domain/secrets/secret-source.ts';
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
  it('is recorded with who uses it, and without its value', async () => {
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

describe('the values to mask', () => {
  it('are those of the secrets that exist', async () => {
    const values = await accessTo(plainSecrets({ X: 'hush' })).values('default', ['X', 'Y']);
    expect([...values]).to.deep.equal([['X', 'hush']]);
  });

  it('lack a secret that the namespace may not use, as nobody in it got it', async () => {
    expect([...(await accessTo(failing(false)).values('default', ['X']))]).to.deep.equal([]);
  });

  it('are unknown while a backend is unavailable', async () => {
    const error = await rejection(accessTo(failing(true)).values('default', ['X']));
    expect(error).to.be.instanceOf(SecretError);
  });
});
