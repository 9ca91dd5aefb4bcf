/** Why a command can be refused. The domain knows no HTTP; `api/errors.ts` maps each code to a status. */
export const refusalCodes = [
  /** The input is invalid: `issues` names each field. */
  'INVALID',
  'NOT_FOUND',
  /** The caller may not do this. */
  'FORBIDDEN',
  /** The state does not allow it. */
  'STATE_CONFLICT',
  /** The object is not at the revision, or version, that the caller gave. */
  'REVISION_MISMATCH',
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** A fault of one field, at a dotted path such as `payload.pipeline.0.uses`. */
export interface Issue {
  readonly field: string;
  readonly issue: string;
}

/** The domain refused a command. Nothing was appended. */
export class RefusalError extends Error {
  readonly code: RefusalCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: RefusalCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'RefusalError';
    this.code = code;
    this.details = details;
  }
}

/** Invalid input; the first issue is also the message. */
export function invalidInput(issues: readonly [Issue, ...Issue[]]): RefusalError {
  const [first] = issues;
  return new RefusalError('INVALID', `${first.field}: ${first.issue}`, { ...first, issues });
}

/** The object does not exist, or no longer exists. */
export function notFound(resource: string, id: string): RefusalError {
  return new RefusalError('NOT_FOUND', `there is no ${resource} ${id}`, { resource, id });
}
