import type { ExtensionErrorCode } from './contract.ts';

/** An endpoint of an extension, as `/openapi.json` describes it. It routes nothing: the router does. */
export interface EndpointDescription {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Below `/ext/<id>`, as the router has it: `/publish/:stream`. */
  readonly path: string;
  /** Name of its method in a generated client, at most 35 characters; made from method and path where left out. */
  readonly operationId?: string;
  /** In a line. */
  readonly summary: string;
  /** What the summary leaves out. */
  readonly description?: string;
  /** Any one of these (or `admin`) is enough; empty: any valid token; null: no token is needed. */
  readonly scopes: readonly string[] | null;
  /** JSON schema of an object: its properties are the parameters of the query. */
  readonly query?: object;
  /** JSON schema of the body. */
  readonly body?: object;
  /**
   * JSON schemas of what is answered where nothing is wrong, by status. `contentMediaType` names what is not JSON, and is
   * `none` where there is no body; `{"$ref": "Task"}` is the service's own schema of that name, as `/openapi.json` has it.
   * An endpoint that only answers with errors is not published.
   */
  readonly answers: Readonly<Record<number, object>>;
  readonly examples?: EndpointExamples;
  readonly answerHeaders?: readonly ('ETag' | 'Location')[];
  /** Takes an `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** What it refuses beside bad requests, tokens and scopes, and what is not there. */
  readonly refusals?: readonly ExtensionErrorCode[];
}

/** What an exchange looks like, in JSON. */
export interface EndpointExamples {
  readonly body?: unknown;
  /** By status. */
  readonly answers?: Readonly<Record<number, unknown>>;
  /** Of the path and the query, by name. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}
