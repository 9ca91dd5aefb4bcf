/**
 * What a command can be refused for. The domain knows no HTTP; `api/errors.ts` maps each code to a status.
 */
export const refusalCodes = [
  /** The input is at fault: `issues` names each field. */
  'INVALID',
  'NOT_FOUND',
  /** The caller may not do this. */
  'FORBIDDEN',
  /** The state does not allow it. */
  'STATE_CONFLICT',
  /** What is changed is not at the revision, or the version, that the caller gave. */
  'REVISION_MISMATCH',
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** One fault of the input, at a dotted path such as `payload.pipeline.0.uses`. */
export interface Issue {
  readonly field: string;
  readonly issue: string;
}

/** A command that the domain refuses. Nothing was appended. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: RefusalCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'Refusal';
    this.code = code;
    this.details = details;
  }
}

/** Input at fault; the first issue is also the message. */
export function invalid(issues: readonly [Issue, ...Issue[]]): Refusal {
  const [first] = issues;
  return new Refusal('INVALID', `${first.field}: ${first.issue}`, { ...first, issues });
}

/** A thing that does not exist (any more). */
export function notFound(resource: string, id: string): Refusal {
  return new Refusal('NOT_FOUND', `there is no ${resource} ${id}`, { resource, id });
}
