import { Webhook as Signer } from 'standardwebhooks';
import type { Clock, Instant } from '../../domain/clock.ts';
import { start } from '../../domain/pipeline/size.ts';
import type { Span } from '../../observability/telemetry.ts';
import { AddressRefused } from '../http/address-rules.ts';
import { HttpClient, type HttpAnswer, type HttpClientOptions } from '../http/http-client.ts';
import { readBody } from '../http/read-body.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import { nearestTextOf } from '../http/text.ts';
import { traceRequest } from '../tracing.ts';

/** How long a receiver may take. Milliseconds. */
const WEBHOOK_TIMEOUT = 15_000;

/** Bytes of an answer's body that are kept. */
const KEPT_OF_ANSWER = 1000;

/** A message on its way. */
export interface WebhookPost {
  /** Of the delivery: the same at every attempt. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** Each signs; `whsec_…`. */
  readonly secrets: readonly string[];
  /** Of the delivery; none where it is not traced. */
  readonly span?: Span | undefined;
}

/** What came back. */
export interface WebhookReply {
  /** null: no answer came. */
  readonly status: number | null;
  readonly answer: string | null;
  readonly error: string | null;
  readonly retryAfter: number | undefined;
  /** The address is one to which no requests are made. */
  readonly refused: boolean;
}

/**
 * Sends messages as Standard Webhooks says: a POST of JSON with `webhook-id`, `webhook-timestamp` and
 * `webhook-signature`. Follows no redirect.
 */
export class WebhookSender {
  private readonly clock: Clock;
  private readonly userAgent: string;
  private readonly client: HttpClient;

  constructor(options: HttpClientOptions & { readonly clock: Clock; readonly userAgent: string }) {
    this.clock = options.clock;
    this.userAgent = options.userAgent;
    this.client = new HttpClient(options);
  }

  /** Sends it once. Rejects only where `signal` is aborted; all else is a reply. */
  async send(post: WebhookPost, signal: AbortSignal): Promise<WebhookReply> {
    const { clock } = this;
    const late = new AbortController();
    const cancel = clock.after(WEBHOOK_TIMEOUT, () => late.abort());
    try {
      return await this.post(post, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      if (signal.aborted) throw error;
      const refused = error instanceof AddressRefused;
      const seconds = WEBHOOK_TIMEOUT / 1000;
      const told = late.signal.aborted ? `no answer within ${seconds} s` : reasonOf(error);
      return { status: null, answer: null, error: told, retryAfter: undefined, refused };
    } finally {
      cancel();
    }
  }

  close(): Promise<void> {
    return this.client.close();
  }

  private async post(post: WebhookPost, signal: AbortSignal): Promise<WebhookReply> {
    const { clock, userAgent: agent } = this;
    const url = new URL(post.url);
    const sendWithin = (span?: Span): Promise<HttpAnswer> =>
      this.client.request(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': agent,
          ...span?.headers,
          ...signedHeaders(post, clock.now()),
        },
        body: post.body,
        signal,
        // Receivers take each `webhook-id` once.
        isRepeatable: true,
      });
    const answer = await (post.span === undefined
      ? sendWithin()
      : traceRequest(post.span, 'POST', url, sendWithin));
    return {
      status: answer.statusCode,
      answer: await beginningOf(answer),
      error: null,
      retryAfter: retryAfterMs(answer.headers['retry-after'], clock.now()),
      refused: false,
    };
  }
}

/** The three headers by which a receiver knows that a message is the service's own, and new. */
function signedHeaders(
  { id, body, secrets }: Pick<WebhookPost, 'id' | 'body' | 'secrets'>,
  now: Instant,
): Readonly<Record<string, string>> {
  const at = new Date(now);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': secrets.map((each) => new Signer(each).sign(id, at, body)).join(' '),
  };
}

/** What comes of a body, as far as it is kept. The status has said all that counts, so a body may break off. */
async function beginningOf(answer: HttpAnswer): Promise<string> {
  const { bytes, coding } = await readBody(answer, KEPT_OF_ANSWER);
  if (coding !== null) return start(`(a body in Content-Encoding ${coding})`, KEPT_OF_ANSWER);
  return nearestTextOf(bytes, answer.headers['content-type']?.at(-1) ?? '');
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return start(error.message || code || error.name, KEPT_OF_ANSWER);
}
