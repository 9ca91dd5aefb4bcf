import { HttpError } from '../errors.ts';

/** Why a sign-in was refused: `details.reason` of the error. */
export const signInReasons = [
  'denied',
  'unknown_sign_in',
  'invalid_response',
  'code_rejected',
  'no_scopes',
  'no_namespace',
  'stale_claims',
  'disabled',
  'conflict',
] as const;
export type SignInReason = (typeof signInReasons)[number];

/** A refused sign-in (403). The audit records it even without an agent. */
export class SignInRefusedError extends HttpError {
  readonly #reason: SignInReason;
  readonly #cause: string | undefined;
  /** The reason for the audit, with more detail than the browser gets. */
  readonly recorded: string;
  /** The person's agent, if it is known. */
  readonly agentId: string | null;

  /**
   * @param message the cause and the remedy
   * @param about.cause for the audit
   */
  constructor(
    reason: SignInReason,
    message: string,
    about: {
      readonly cause?: string;
      readonly agentId?: string | null;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super('forbidden', message, { reason }, about.headers);
    this.name = 'SignInRefusedError';
    this.#reason = reason;
    this.#cause = about.cause;
    this.recorded = `sign-in refused (${reason})${about.cause === undefined ? '' : `: ${about.cause}`}`;
    this.agentId = about.agentId ?? null;
  }

  /** The same with headers for the response. */
  with(headers: Readonly<Record<string, string>>): SignInRefusedError {
    const cause = this.#cause === undefined ? {} : { cause: this.#cause };
    return new SignInRefusedError(this.#reason, this.message, {
      ...cause,
      agentId: this.agentId,
      headers,
    });
  }
}
