/**
 * Explains why `fetch` could not verify a service's certificate, and what to do about it.
 * Returns null for any other error.
 */
export function certificateProblem(error: unknown): string | null {
  const { cause = error } = error as { readonly cause?: unknown };
  const { code = '' } = (cause ?? {}) as { readonly code?: string };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return 'its certificate is for another host; --url or SVC_URL must name a host it is for';
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `its certificate is not valid now (${code}); renew it and send SIGHUP to the service`;
  }
  if (!untrustedCodes.has(code)) return null;
  return `its certificate is not trusted (${code}); set NODE_EXTRA_CA_CERTS to a PEM file with it or its CA`;
}

/** OpenSSL's codes for a chain without a trusted root (`man openssl-verification-options`). */
const untrustedCodes: ReadonlySet<string> = new Set([
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_CA',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
