import { expect } from 'chai';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import {
  ConnectionUrlError,
  readConnectionUrl,
} from '../../../stores/eventstoredb/connecting/connection-url.ts';
import { openEventStoreDb } from '../../../stores/eventstoredb/event-store.ts';
import { plainCodec } from '../../support/plain-codec.ts';

describe('an EventStoreDB connection string', () => {
  it('names a server, a user and a password', () => {
    expect(readConnectionUrl('esdb://ann:pass@db.example:2114')).to.deep.include({
      hosts: [{ address: 'db.example', port: 2114 }],
      discover: false,
      secure: true,
      credentials: { username: 'ann', password: 'pass' },
    });
    const [host] = readConnectionUrl('esdb://[::1]?tls=false').hosts;
    expect(host).to.deep.equal({ address: '[::1]', port: 2113 });
  });

  it('may have a colon, an @ and escapes in the password, unlike with the client', () => {
    const password = (url: string) => readConnectionUrl(url).credentials?.password;
    expect(password('esdb://ann:a:b:c@db')).to.equal('a:b:c');
    expect(password('esdb://ann:a%3Ab%40@db')).to.equal('a:b@');
    expect(password('esdb://ann:a@b@db')).to.equal('a@b');
    expect(password('esdb://ann:a/b@db')).to.equal('a/b');
  });

  it('may name the members of a cluster, or one to discover the others', () => {
    const { hosts, discover } = readConnectionUrl('esdb://a:1,b:2,c?tls=false');
    expect(discover).to.equal(false);
    expect(hosts.map(({ port }) => port)).to.deep.equal([1, 2, 2113]);
    expect(readConnectionUrl('esdb+discover://a?tls=false').discover).to.equal(true);
  });

  it("may use the server's newer name", () => {
    const plain = readConnectionUrl('kurrentdb://ann:pass@db:2114?nodePreference=leader');
    expect(plain).to.deep.equal(readConnectionUrl('esdb://ann:pass@db:2114?nodePreference=leader'));
    expect(readConnectionUrl('kurrentdb+discover://a?tls=false').discover).to.equal(true);
  });

  it('may set options, in any spelling', () => {
    const url =
      'esdb://a:b@db/?keep-alive-interval=20000&gossipTimeout=3&nodepreference=follower&tlsCAFile=/a+b%20c.pem';
    expect(readConnectionUrl(url)).to.deep.include({
      numbers: { keepAliveInterval: 20_000, gossipTimeout: 3 },
      nodePreference: 'follower',
      files: { tlsCAFile: '/a+b c.pem' },
    });
  });

  it('takes a keep-alive of -1 as never, although the client takes it as immediately', () => {
    const { numbers } = readConnectionUrl(
      'esdb://a:b@db?keepAliveInterval=-1&keepAliveTimeout=-1&discoveryInterval=0',
    );
    const longest = 2 ** 31 - 1;
    expect(numbers).to.deep.equal({
      keepAliveInterval: longest,
      keepAliveTimeout: longest,
      discoveryInterval: 0,
    });
  });

  const refused: readonly (readonly [url: string, says: RegExp])[] = [
    ['http://db', /must look like/],
    ['esdb://', /host/],
    ['esdb://ann@db', /both user and password/],
    ['esdb://ann:@db', /both user and password/],
    ['esdb://ann:50%@db', /%25/],
    ['esdb://db', /no user and password/],
    ['esdb://db:port?tls=false', /name:port/],
    ['esdb://db:70000?tls=false', /name:port/],
    ['esdb+discover://a,b?tls=false', /only the first/],
    ['esdb://db?tsl=false', /unknown option 'tsl'/],
    ['esdb://db?tls=no', /tls to true or false/],
    ['esdb://a:b@db?tlsVerifyCert=false', /tlsVerifyCert=false/],
    ['esdb://a:b@db?throwOnAppendFailure=false', /hides conflicts/],
    ['esdb://a:b@db?defaultDeadline=5', /defaultDeadline/],
    ['esdb://a:b@db?keepAliveInterval=soon', /to a number/],
    ['esdb://a:b@db?keepAliveTimeout=0', /keepAliveTimeout to at least 1/],
    ['esdb://a,b?tls=false&maxDiscoverAttempts=-1', /maxDiscoverAttempts to a number/],
    ['esdb://a,b?tls=false&maxDiscoverAttempts=0', /maxDiscoverAttempts to at least 1/],
    ['esdb://a,b?tls=false&gossipTimeout=0', /gossipTimeout to at least 1/],
    ['esdb://a:b@db?nodePreference=nearest', /one of leader/],
    ['esdb://a:b@db?userCertFile=/a', /together/],
  ];
  for (const [url, says] of refused) {
    it(`is rejected: ${url}`, () => {
      expect(() => readConnectionUrl(url)).to.throw(ConnectionUrlError, says);
    });
  }

  it('is not shown in errors, because of the password', async () => {
    const opened = openEventStoreDb({
      url: 'esdb://ann:secret@db?keepAliveInterval=soon',
      codec: plainCodec,
      telemetry: silent,
    });
    const error: unknown = await opened.catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ConnectionUrlError);
    expect(String(error)).not.to.include('secret');
  });

  it('warns when user and password would not be sent', async () => {
    const warnings: string[] = [];
    const telemetry: Telemetry = {
      ...silent,
      log: { ...silent.log, warn: (message) => warnings.push(message) },
    };
    const open = async (url: string): Promise<void> => {
      const store = await openEventStoreDb({ url, codec: plainCodec, telemetry });
      await store.close();
    };
    await open('esdb://db?tls=false');
    expect(warnings).to.be.empty;
    await open('esdb://ann:secret@db?tls=false');
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.include('tls=false').and.not.to.include('secret');
  });
});
