import { expect } from 'chai';
import { artifactConfiguration } from '../../../app/configuration/artifact-settings.ts';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import {
  ConfigurationError,
  type Environment,
} from '../../../app/configuration/setting-readers.ts';

describe('the settings of artifacts', () => {
  const bucket = { SVC_ARTIFACTS_S3_BUCKET: 'results' };

  it('default to the data directory, and to Amazon if only a bucket is set', () => {
    expect(artifactConfiguration({}).s3).to.equal(undefined);
    expect(artifactConfiguration(bucket).s3).to.deep.equal({
      bucket: 'results',
      prefix: 'artifacts/',
      region: 'us-east-1',
      endpoint: undefined,
      credentials: undefined,
    });
  });

  it('are read together', () => {
    const { s3, maxBytes } = artifactConfiguration({
      ...bucket,
      SVC_ARTIFACTS_MAX_BYTES: '1000000',
      SVC_ARTIFACTS_S3_ENDPOINT: 'http://minio:9000/',
      SVC_ARTIFACTS_S3_REGION: 'eu-central-1',
      SVC_ARTIFACTS_S3_PREFIX: 'prod/svc',
      SVC_ARTIFACTS_S3_KEY_ID: 'AKIA',
      SVC_ARTIFACTS_S3_SECRET: 'hush',
    });
    expect(maxBytes).to.equal(1_000_000);
    expect(s3).to.deep.equal({
      bucket: 'results',
      prefix: 'prod/svc/',
      region: 'eu-central-1',
      endpoint: 'http://minio:9000',
      credentials: { keyId: 'AKIA', secret: 'hush' },
    });
  });

  const bad: readonly (readonly [env: Environment, says: RegExp])[] = [
    [
      { SVC_ARTIFACTS_MAX_BYTES: '1000' },
      /^SVC_ARTIFACTS_MAX_BYTES is "1000"; it must be 0 \(no artifacts\) or a whole number from 262145 to 268435456$/,
    ],
    [{ SVC_ARTIFACTS_MAX_BYTES: '16MB' }, /^SVC_ARTIFACTS_MAX_BYTES is "16MB"/],
    [
      { SVC_ARTIFACTS_S3_ENDPOINT: 'http://minio:9000' },
      /^SVC_ARTIFACTS_S3_BUCKET is not set, but SVC_ARTIFACTS_S3_ENDPOINT is; set it to the bucket's name/,
    ],
    [{ SVC_ARTIFACTS_S3_BUCKET: 's3://results' }, /^SVC_ARTIFACTS_S3_BUCKET is "s3:/],
    [{ ...bucket, SVC_ARTIFACTS_S3_ENDPOINT: 'minio:9000' }, /^SVC_ARTIFACTS_S3_ENDPOINT is "min/],
    [{ ...bucket, SVC_ARTIFACTS_S3_REGION: 'Frankfurt' }, /^SVC_ARTIFACTS_S3_REGION is "Frank/],
    [{ ...bucket, SVC_ARTIFACTS_S3_PREFIX: '../other' }, /^SVC_ARTIFACTS_S3_PREFIX is "..\/o/],
    [{ ...bucket, SVC_ARTIFACTS_S3_PREFIX: '/abs' }, /^SVC_ARTIFACTS_S3_PREFIX is "\/abs"/],
    [
      { ...bucket, SVC_ARTIFACTS_S3_KEY_ID: 'AKIA' },
      /^SVC_ARTIFACTS_S3_SECRET is not set, but SVC_ARTIFACTS_S3_KEY_ID is; set both or neither$/,
    ],
    [
      { ...bucket, SVC_ARTIFACTS_S3_SECRET: 'hush' },
      /^SVC_ARTIFACTS_S3_KEY_ID is not set, but SVC_ARTIFACTS_S3_SECRET is; set both or neither$/,
    ],
  ];
  for (const [env, says] of bad) {
    it(`are rejected for ${JSON.stringify(env)}`, () => {
      expect(() => artifactConfiguration(env))
        .to.throw(ConfigurationError, says)
        .with.property('message')
        .that.does.not.include('hush');
    });
  }

  it('cause a warning if other machines could not read the files', () => {
    const servers = {
      SVC_EVENT_STORE_URL: 'esdb://store',
      SVC_READ_MODEL_URL: 'mongodb://m',
      JWT_SECRET_KEY: 'JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV',
      SVC_SECRETS_KEY: Buffer.from(`${'k'.repeat(31)}!`).toString('base64'),
    };
    const warnings = (env: Environment) => readConfiguration({ ...servers, ...env }).warnings;
    expect(warnings({})).to.deep.equal([
      'SVC_EVENT_STORE_URL is set without SVC_ARTIFACTS_S3_BUCKET: other machines cannot read results over 256 KiB of runs on this one',
    ]);
    expect(warnings(bucket)).to.deep.equal([]);
    expect(warnings({ SVC_ARTIFACTS_MAX_BYTES: '0' })).to.deep.equal([]);
  });
});
