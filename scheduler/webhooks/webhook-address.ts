import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { Secrets } from '../../domain/pipeline/secrets.ts';
import { hostIssue } from '../../domain/secrets/host-check.ts';
import type { SecretAccess, SecretUser } from '../../domain/secrets/secret-access.ts';
import { SecretError, type Secret } from '../../domain/secrets/secret-source.ts';
import { fillUrl, secretsInUrl } from '../../domain/secrets/secret-url.ts';

/** The address of a message, or the reason why it cannot be sent. */
export type WebhookAddress =
  | {
      readonly url: string;
      /** Masks the secrets of the address. */
      readonly mask: (text: string) => string;
    }
  | { readonly error: string };

/**
 * The address of a webhook with its secrets, which are opened at each attempt. Records contain the address without
 * them.
 * @throws errors of the log
 */
export async function addressOf(
  url: string,
  secrets: Pick<SecretAccess, 'open'>,
  user: SecretUser,
): Promise<WebhookAddress> {
  const names = secretsInUrl(url);
  if (names.length === 0) return { url, mask: (text) => text };
  const opened: Secret[] = [];
  try {
    for (const name of names) opened.push(await secrets.open(name, user));
  } catch (error) {
    if (error instanceof SecretError || error instanceof PipelineError) {
      return { error: error.message };
    }
    throw error;
  }
  const filled = fillUrl(url, new Map(opened.map(({ name, value }) => [name, value])));
  if (filled === null)
    return { error: 'with its secrets, the webhook_url is not an http or https URL' };
  const issue = hostIssue(opened, filled, filled.hostname);
  if (issue !== null) return { error: issue };
  const masking = new Secrets(opened.map(({ value }) => value));
  return { url: filled.href, mask: (text) => masking.maskText(text) };
}
