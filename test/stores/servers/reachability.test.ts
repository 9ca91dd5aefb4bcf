import { expect } from 'chai';
import { reachabilityFrom } from '../../../stores/servers/reachability.ts';

describe('the reason of a failed connection', () => {
  const failed = (code: string): Error => Object.assign(new Error('failed'), { code });

  for (const [code, kind] of [
    ['ECONNREFUSED', 'connection_refused'],
    ['ENOTFOUND', 'name_unknown'],
    ['EAI_AGAIN', 'name_unknown'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate_untrusted'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'certificate_untrusted'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'certificate_untrusted'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate_untrusted'],
    ['CERT_HAS_EXPIRED', 'certificate_expired'],
    ['CERT_NOT_YET_VALID', 'certificate_expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate_other_host'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_not_offered'],
    ['ECONNRESET', 'no_answer'],
  ] as const) {
    it(`is ${kind} for ${code}`, () => {
      expect(reachabilityFrom(failed(code)).kind).to.equal(kind);
    });
  }

  it('is the reason of the first address if a name has several', () => {
    const error = new AggregateError([failed('ECONNREFUSED'), failed('ETIMEDOUT')]);
    expect(reachabilityFrom(error).kind).to.equal('connection_refused');
  });
});
