import { expect } from 'chai';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { checkTls } from '../../../app/doctor/tls-checks.ts';
import { certificate } from '../../support/certificates.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the check of TLS', () => {
  const directory = useTemporaryDirectory();
  const { cert, key } = certificate('one');
  const at = (time: string): number => Date.parse(time);
  const now = at('2027-01-01T00:00Z');

  function check(env: Readonly<Record<string, string>>, when = now): readonly string[] {
    const findings = checkTls(readConfiguration(env), when);
    for (const { verdict, advice } of findings) expect(advice === null).to.equal(verdict === 'ok');
    return findings.map(({ verdict, found }) => `${verdict}: ${found}`);
  }

  /** A certificate with a key that only its owner can read. */
  function files(): { readonly SVC_TLS_CERT_FILE: string; readonly SVC_TLS_KEY_FILE: string } {
    const own = join(directory(), 'key.pem');
    copyFileSync(key, own);
    chmodSync(own, 0o600);
    return { SVC_TLS_CERT_FILE: cert, SVC_TLS_KEY_FILE: own };
  }

  it('says until when the certificate is valid', () => {
    expect(check(files())).to.deep.equal([
      'ok: 1.2 or later, the certificate is valid until 2126-11-02',
    ]);
  });

  it('finds a certificate that expires, has expired, or is not valid yet', () => {
    expect(check(files(), at('2126-10-25T00:00Z'))).to.deep.equal([
      'warn: the certificate expires on 2126-11-02',
    ]);
    expect(check(files(), at('2126-11-03T00:00Z'))).to.deep.equal([
      'fault: the certificate expired on 2126-11-02',
    ]);
    expect(check(files(), at('2020-01-01T00:00Z'))[0]).to.match(
      /^fault: the certificate is not valid before /,
    );
  });

  it('finds unusable files, and a key that others can read', () => {
    const { SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE } = files();
    chmodSync(SVC_TLS_KEY_FILE, 0o644);
    expect(check({ SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE })[1]).to.match(
      /^warn: other users can open .*key\.pem, the private key$/,
    );
    writeFileSync(SVC_TLS_KEY_FILE, 'no key');
    expect(check({ SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE })[0]).to.match(/^fault: .*cannot be used/);
  });

  it('warns of plain HTTP that other machines can reach, unless a proxy is in front', () => {
    expect(check({})).to.deep.equal([]);
    expect(check({ SVC_HOST: '0.0.0.0' })).to.deep.equal([
      'warn: it speaks plain HTTP on 0.0.0.0: others on the network can read tokens',
    ]);
    expect(check({ SVC_HOST: '0.0.0.0', SVC_TRUST_PROXY: '1' })).to.deep.equal([]);
  });
});
