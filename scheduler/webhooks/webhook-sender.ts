import { Webhook as Signer } from 'standardwebhooks';
import type { Clock, Instant } from '../../domain/clock.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import type { Span } from '../../observability/telemetry.ts';
import { AddressRefusedError } from '../http/address-rules.ts';
import { HttpClient, type HttpResponse, type HttpClientOptions } from '../http/http-client.ts';
import { readBody } from '../http/read-body.ts';
import { retryAfterMs } from '../http/retry-after.ts';
import { decodeTextLossy } from '../http/charset.ts';
import { traceRequest } from '../tracing.ts';

/** How long a receiver may take. Milliseconds. */
const TIMEOUT = 15_000;

/** Bytes of a response body that are kept. */
const MAX_ANSWER_BYTES = 1000;

export interface WebhookRequest {
  /** The id of the delivery, which is the same at every attempt. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** `whsec_…`; each adds a signature. */
  readonly secrets: readonly string[];
  /** The span of the delivery, if it is traced. */
  readonly span?: Span | undefined;
}

/** The receiver's response, or the error. */
export interface WebhookReply {
  /** null: no response. */
  readonly status: number | null;
  readonly answer: string | null;
  readonly error: string | null;
  readonly retryAfter: number | undefined;
  /** Requests to the address are not allowed. */
  readonly refused: boolean;
}

/**
 * Sends messages according to Standard Webhooks: a POST of JSON with `webhook-id`, `webhook-timestamp` and
 * `webhook-signature`. Follows no redirect.
 */
export class WebhookSender {
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #client: HttpClient;

  constructor(options: HttpClientOptions & { readonly clock: Clock; readonly userAgent: string }) {
    this.#clock = options.clock;
    this.#userAgent = options.userAgent;
    this.#client = new HttpClient(options);
  }

  /** Sends a message once. Rejects only when `signal` is aborted; any other failure is a reply. */
  async send(request: WebhookRequest, signal: AbortSignal): Promise<WebhookReply> {
    const late = new AbortController();
    const cancel = this.#clock.after(TIMEOUT, () => late.abort());
    try {
      return await this.#post(request, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      if (signal.aborted) throw error;
      const message = late.signal.aborted
        ? `no answer within ${TIMEOUT / 1000} s`
        : reasonOf(error);
      const refused = error instanceof AddressRefusedError;
      return { status: null, answer: null, error: message, retryAfter: undefined, refused };
    } finally {
      cancel();
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #post(request: WebhookRequest, signal: AbortSignal): Promise<WebhookReply> {
    const clock = this.#clock;
    const url = new URL(request.url);
    const send = (span?: Span): Promise<HttpResponse> =>
      this.#client.request(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': this.#userAgent,
          ...span?.headers,
          ...signedHeaders(request, clock.now()),
        },
        body: request.body,
        signal,
        // Receivers accept each `webhook-id` once.
        isRepeatable: true,
      });
    const { span } = request;
    const answer = await (span === undefined ? send() : traceRequest(span, 'POST', url, send));
    return {
      status: answer.statusCode,
      answer: await beginningOf(answer),
      error: null,
      retryAfter: retryAfterMs(answer.headers['retry-after'], clock.now()),
      refused: false,
    };
  }
}

/** The headers by which a receiver verifies the sender and the age of a message. */
function signedHeaders(
  { id, body, secrets }: WebhookRequest,
  now: Instant,
): Readonly<Record<string, string>> {
  const at = new Date(now);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': secrets.map((each) => new Signer(each).sign(id, at, body)).join(' '),
  };
}

/** The start of a body. It may be incomplete, because only the status matters. */
async function beginningOf(answer: HttpResponse): Promise<string> {
  const { bytes, coding } = await readBody(answer, MAX_ANSWER_BYTES);
  if (coding !== null)
    return truncateString(`(body with Content-Encoding ${coding})`, MAX_ANSWER_BYTES);
  return decodeTextLossy(bytes, answer.headers['content-type']?.at(-1) ?? '');
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return truncateString(error.message || code || error.name, MAX_ANSWER_BYTES);
}
