import type { ExtensionErrorCode } from './contract.ts';

/** Describes an endpoint of an extension in `/openapi.json`. Routing is left to the router. */
export interface EndpointDescription {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Path below `/ext/<id>`, in the router's syntax: `/publish/:stream`. */
  readonly path: string;
  /** Method name in generated clients, at most 35 characters. Default: built from method and path. */
  readonly operationId?: string;
  /** One line. */
  readonly summary: string;
  /** Details beyond the summary. */
  readonly description?: string;
  /** One of these scopes (or `admin`) is enough. Empty: any valid token. null: no token needed. */
  readonly scopes: readonly string[] | null;
  /** JSON schema of an object whose properties are the query parameters. */
  readonly query?: object;
  /** JSON schema of the body. */
  readonly body?: object;
  /**
   * JSON schemas of successful responses, by status. `contentMediaType` names a format other than JSON; `none` means
   * no body. `{"$ref": "Task"}` refers to a schema of `/openapi.json`. An endpoint with error responses only is not
   * published.
   */
  readonly answers: Readonly<Record<number, object>>;
  readonly examples?: EndpointExamples;
  readonly answerHeaders?: readonly ('ETag' | 'Location')[];
  /** Supports `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** Error codes besides those for invalid requests, tokens, scopes and missing resources. */
  readonly refusals?: readonly ExtensionErrorCode[];
}

/** Examples as JSON. */
export interface EndpointExamples {
  readonly body?: unknown;
  /** By status. */
  readonly answers?: Readonly<Record<number, unknown>>;
  /** Path and query parameters, by name. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}
