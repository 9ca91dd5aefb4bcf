import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ArtifactError } from '../../../domain/artifacts/artifact-store.ts';
import {
  S3Artifacts,
  type S3Limits,
  type S3Settings,
} from '../../../stores/artifacts/s3-artifacts.ts';
import { contentOf, textIn } from '../../contracts/artifact-store.ts';
import { S3Server, type S3Fault } from '../../support/s3-server.ts';

describe('the store of artifacts in S3, when the server fails,', () => {
  const run = randomUUID();
  const { name, content } = contentOf('a result');
  let server: S3Server;
  const opened: S3Artifacts[] = [];

  beforeEach(async () => {
    server = await S3Server.start();
  });

  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
    await server.close();
  });

  function storeWith(
    settings: Partial<S3Settings> = {},
    limits: Partial<S3Limits> = {},
  ): S3Artifacts {
    const { bucket, region, credentials, url: endpoint } = server;
    const where = { bucket, region, credentials, endpoint, prefix: '', ...settings };
    const store = new S3Artifacts(where, limits);
    opened.push(store);
    return store;
  }

  async function faultOf(work: Promise<unknown>): Promise<ArtifactError> {
    const error: unknown = await work.then(
      () => null,
      (fault: unknown) => fault,
    );
    expect(error).to.be.an.instanceOf(ArtifactError);
    return error as ArtifactError;
  }

  /** Makes the server fail this many times. */
  function failTimes(times: number, fault: S3Fault): void {
    let left = times;
    server.fault = () => (left-- > 0 ? fault : null);
  }

  const refusals: readonly (readonly [
    what: string,
    settings: (server: S3Server) => Partial<S3Settings>,
    says: RegExp,
  ])[] = [
    [
      'a wrong secret',
      ({ credentials }) => ({ credentials: { ...credentials, secret: 'other' } }),
      /\(SignatureDoesNotMatch\): check SVC_ARTIFACTS_S3_KEY_ID and SVC_ARTIFACTS_S3_SECRET$/,
    ],
    [
      'an unknown key',
      ({ credentials }) => ({ credentials: { ...credentials, keyId: 'AKIAOTHER' } }),
      /\(InvalidAccessKeyId\): check SVC_ARTIFACTS_S3_KEY_ID/,
    ],
    [
      'an unknown bucket',
      () => ({ bucket: 'elsewhere' }),
      /in the bucket elsewhere \(NoSuchBucket\): create it, or correct SVC_ARTIFACTS_S3_BUCKET$/,
    ],
    ['another region', () => ({ region: 'us-west-2' }), /: correct SVC_ARTIFACTS_S3_REGION$/],
  ];
  for (const [what, settings, says] of refusals) {
    it(`names the setting to correct for ${what}, at each call`, async () => {
      const store = storeWith(settings(server));
      const calls = [
        () => store.put(run, name, content),
        () => store.open(run, name),
        () => store.copy(name, run, randomUUID()),
        () => store.remove(run, name),
        () => store.check(),
        () => store.list().next(),
      ];
      for (const call of calls) {
        const { code, message } = await faultOf(call());
        expect(code).to.equal('UNAVAILABLE');
        expect(message).to.match(says);
        expect(message).to.not.include(server.url);
      }
    });
  }

  it('says which rights a key lacks', async () => {
    server.fault = () => ({ status: 403, code: 'AccessDenied' });
    const { message } = await faultOf(storeWith().put(run, name, content));
    expect(message).to.match(/\(AccessDenied\): allow the key to list, get, put and delete/);
  });

  it('retries after an error of the server', async () => {
    failTimes(2, { status: 500, code: 'InternalError' });
    const store = storeWith();
    await store.put(run, name, content);
    expect(server.requests).to.have.lengthOf(3);
    expect(await textIn(await store.open(run, name))).to.equal('a result');
  });

  it('gives up after a few tries, even on a response that is not XML', async () => {
    server.fault = () => ({ status: 502 });
    const { message } = await faultOf(storeWith().put(run, name, content));
    expect(server.requests).to.have.lengthOf(3);
    expect(message).to.match(/^could not write artifacts in the bucket results \(/);
  });

  it('gives up on a server that does not respond', async () => {
    server.fault = () => 'hang';
    const store = storeWith({}, { requestTimeout: 100, attempts: 1 });
    const { message } = await faultOf(store.put(run, name, content));
    expect(message).to.match(/\(TimeoutError\): check SVC_ARTIFACTS_S3_ENDPOINT/);
  });

  it('says that nothing listens there', async () => {
    const store = storeWith({}, { attempts: 1 });
    await server.close();
    const { message } = await faultOf(store.open(run, name));
    expect(message).to.match(/\(ECONNREFUSED\): check SVC_ARTIFACTS_S3_ENDPOINT, and that/);
    server = await S3Server.start();
  });

  it('fails to read an object whose transfer breaks off', async () => {
    const store = storeWith();
    const large = contentOf('z'.repeat(3_000_000));
    await store.put(run, large.name, large.content);
    server.fault = (request) => (request.startsWith('GET') ? 'cut' : null);
    const { message } = await faultOf(textIn(await store.open(run, large.name)));
    expect(message).to.match(/^could not read artifacts in the bucket results/);
  });

  it('ignores objects in the bucket that are not artifacts', async () => {
    const store = storeWith({ prefix: 'svc/' });
    const other = { content: Buffer.from('{}'), modified: 0 };
    for (const key of ['svc/readme.txt', `svc/${run}/x.json`, `svc/${run}/a/${name}.json`, 'b']) {
      server.objects.set(key, other);
    }
    await store.put(run, name, content);
    const found = [];
    for await (const page of store.list()) found.push(...page);
    expect(found.map(({ artifact }) => artifact)).to.deep.equal([name]);
  });
});
