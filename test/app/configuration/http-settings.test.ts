import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import {
  ConfigurationError,
  type Environment,
} from '../../../app/configuration/setting-readers.ts';

function faultOf(env: Environment): string {
  try {
    readConfiguration(env);
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigurationError);
    return (error as ConfigurationError).message;
  }
  return expect.fail('the settings were accepted');
}

const proxiesOf = (env: Environment): object => {
  const { http, https, except } = readConfiguration(env).http.proxies;
  return { http: http?.href ?? null, https: https?.href ?? null, except };
};

describe('the settings of outgoing requests', () => {
  it('accept true, false, or a list of hosts, addresses and networks', () => {
    const of = (text: string): unknown =>
      readConfiguration({ SVC_HTTP_ALLOW_PRIVATE: text }).http.allowPrivate;
    expect(of('')).to.equal(false);
    expect(of('false')).to.equal(false);
    expect(of('true')).to.equal(true);
    const list = ['db.internal', '*.svc.internal', '10.0.0.0/8', '[fd00::1]', '169.254.169.254'];
    expect(of(list.join(' , '))).to.deep.equal(list);
  });

  for (const text of [
    'yes',
    '1',
    'TRUE',
    'true,10.0.0.0/8',
    '10.0.0.0/33',
    'a b',
    'http://a',
    ',',
  ]) {
    it(`reject ${text} in one line`, () => {
      const fault = faultOf({ SVC_HTTP_ALLOW_PRIVATE: text });
      expect(fault).to.match(
        /^SVC_HTTP_ALLOW_PRIVATE names ".*"; it must be true or false alone, or hosts, addresses and networks by commas \(.*\)$/,
      );
    });
  }

  it('accept proxies by their usual names in either case', () => {
    const none = { http: null, https: null, except: [] };
    expect(proxiesOf({})).to.deep.equal(none);
    expect(proxiesOf({ HTTP_PROXY: 'http://proxy:3128' })).to.deep.equal({
      ...none,
      http: 'http://proxy:3128/',
    });
    expect(proxiesOf({ https_proxy: 'https://me:p%40@proxy' })).to.deep.equal({
      ...none,
      https: 'https://me:p%40@proxy/',
    });
    expect(proxiesOf({ http_proxy: 'lower:1', HTTP_PROXY: 'upper:1' })).to.deep.equal({
      ...none,
      http: 'http://lower:1/',
    });
    expect(proxiesOf({ NO_PROXY: ' localhost,127.0.0.0/8  .example , *' })).to.deep.equal({
      ...none,
      except: ['localhost', '127.0.0.0/8', '.example', '*'],
    });
  });

  for (const [variable, value] of [
    ['HTTP_PROXY', 'socks5://me:secret@proxy'],
    ['https_proxy', 'http://'],
    ['HTTPS_PROXY', 'http://me:sec%ret@proxy'],
  ] as const) {
    it(`reject ${variable} that is ${value} in one line, without its password`, () => {
      const fault = faultOf({ [variable]: value });
      expect(fault).to.match(new RegExp(`^${variable} .*$`));
      expect(fault).not.to.match(/sec/);
    });
  }

  it('warn of invalid entries of NO_PROXY', () => {
    const { warnings, http } = readConfiguration({ NO_PROXY: 'localhost,10.*' });
    expect(warnings).to.deep.equal(['NO_PROXY names "10.*", which is not a host or network']);
    expect(http.proxies.except).to.deep.equal(['localhost']);
  });
});
