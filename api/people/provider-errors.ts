import { errors as jose } from 'jose';
import { AuthorizationResponseError, ResponseBodyError } from 'openid-client';
import { SignInRefusedError } from './sign-in-refused-error.ts';

/** The library's codes for an invalid response. All others mean that the provider can't be used. */
const invalid: ReadonlySet<unknown> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
]);

/** Errors with which a provider reports its own failure (RFC 6749, section 4.1.2.1). */
const troubles: ReadonlySet<string> = new Set(['server_error', 'temporarily_unavailable']);

/** The refusal of a sign-in that failed with an error of the library; null if the provider can't be used. */
export function refusalIn(error: unknown): SignInRefusedError | null {
  if (!(error instanceof Error)) return null;
  const cause = causeOf(error);
  if (error instanceof AuthorizationResponseError) {
    if (troubles.has(error.error)) return null;
    const message =
      'the identity provider has refused the sign-in; sign in again, or ask its administrator';
    return new SignInRefusedError('denied', message, { cause });
  }
  if (error instanceof ResponseBodyError) {
    if (error.error !== 'invalid_grant') return null;
    const message = 'the sign-in was completed before, or took too long; sign in again';
    return new SignInRefusedError('code_rejected', message, { cause });
  }
  if (!invalid.has((error as { readonly code?: unknown }).code)) return null;
  const message = 'the response of the identity provider is not for this sign-in; sign in again';
  return new SignInRefusedError('invalid_response', message, { cause });
}

/** Whether the provider responded, but lacks the key. */
export const isUnknownKey = (error: unknown): error is jose.JOSEError =>
  error instanceof jose.JWKSNoMatchingKey ||
  error instanceof jose.JWKSMultipleMatchingKeys ||
  error instanceof jose.JOSENotSupported;

/** The messages of an error and its causes, on one line. */
function causeOf(error: Error): string {
  const { error: code, error_description: text } = error as {
    readonly error?: unknown;
    readonly error_description?: unknown;
  };
  const said = [code, text].filter((each) => typeof each === 'string').join(': ');
  const inner = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  const line = said === '' ? `${error.message}${inner}` : said;
  return line.replaceAll(/[^ -~]+/g, ' ').slice(0, 300);
}
