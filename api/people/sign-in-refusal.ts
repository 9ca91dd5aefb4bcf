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

/** A sign-in that was refused: 403. The audit has it, also without an agent. */
export class SignInRefusal extends HttpError {
  readonly #reason: SignInReason;
  readonly #cause: string | undefined;
  /** What the audit says: more than the browser is told. */
  readonly recorded: string;
  /** The person's agent, if it is known. */
  readonly agentId: string | null;

  /**
   * @param message what happened, and what to do
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
    this.name = 'SignInRefusal';
    this.#reason = reason;
    this.#cause = about.cause;
    this.recorded = `sign-in refused (${reason})${about.cause === undefined ? '' : `: ${about.cause}`}`;
    this.agentId = about.agentId ?? null;
  }

  /** The same with headers for the response. */
  with(headers: Readonly<Record<string, string>>): SignInRefusal {
    const cause = this.#cause === undefined ? {} : { cause: this.#cause };
    return new SignInRefusal(this.#reason, this.message, {
      ...cause,
      agentId: this.agentId,
      headers,
    });
  }
}
