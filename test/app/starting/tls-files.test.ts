import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { readTlsFiles } from '../../../app/starting/tls-files.ts';
import { certificate } from '../../support/certificates.ts';

describe('the certificate of HTTPS', () => {
  const one = certificate('one');
  const two = certificate('two');

  it('is read with its key', () => {
    const files = readTlsFiles({ tlsCertFile: one.cert, tlsKeyFile: one.key });
    expect(files?.cert).to.match(/^-----BEGIN CERTIFICATE-----/);
    expect(files?.key).to.match(/^-----BEGIN PRIVATE KEY-----/);
  });

  it('is null if none is set', () => {
    expect(readTlsFiles(readConfiguration({}))).to.equal(null);
  });

  it('is rejected without its key, and the key without it', () => {
    expect(() => readConfiguration({ SVC_TLS_CERT_FILE: one.cert })).to.throw(
      'SVC_TLS_KEY_FILE is not set, but SVC_TLS_CERT_FILE is; set both or neither',
    );
    expect(() => readConfiguration({ SVC_TLS_KEY_FILE: one.key })).to.throw(
      'SVC_TLS_CERT_FILE is not set',
    );
  });

  it('is rejected with the key of another certificate, or when it cannot be read', () => {
    expect(() => readTlsFiles({ tlsCertFile: one.cert, tlsKeyFile: two.key })).to.throw(
      /^SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE cannot be used: .*key values mismatch/i,
    );
    expect(() => readTlsFiles({ tlsCertFile: '/nowhere.pem', tlsKeyFile: one.key })).to.throw(
      'SVC_TLS_CERT_FILE names "/nowhere.pem", which cannot be read (ENOENT)',
    );
  });
});
