import type { TSchema } from '@sinclair/typebox';
import type { Request, Response } from 'express';
import type { Instant } from '../domain/clock.ts';
import type { CommandContext, SeenRevision } from '../domain/handle.ts';
import { nameBasedId, newId } from '../domain/ids.ts';
import type { Position } from '../domain/event-store.ts';
import type { Projection } from '../projections/read-model.ts';
import type { Answers } from './schemas/answer-schemas.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { ErrorCode } from './errors.ts';

/** Who calls, as the agent is now. */
export interface Caller {
  readonly agentId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Has the scope `admin`, which implies all. */
  readonly admin: boolean;
  readonly sessionId: string;
  /** When the token expires. */
  readonly expiresAt: Instant;
}

/** A request that has passed authentication and validation. */
export interface Call<Body = unknown, Query = Record<string, string | undefined>> {
  readonly dependencies: ApiDependencies;
  /** null on endpoints that need no token. */
  readonly caller: Caller | null;
  /** Of the path; ids in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Position of the caller's last command through this process. */
  readonly ownPosition: Position;
  /** Address of the client, behind trusted proxies. */
  readonly address: string;
  /** For a command: who, why, and the id that its events' ids come from. */
  readonly context: CommandContext;
  /** The address under which the client reaches the service, without a slash at its end. */
  readonly base: () => string;
  /** The command was sent with an Idempotency-Key: what it creates has its id from there. */
  readonly keyed: boolean;
  /** Revisions of `If-Match`; undefined without one. */
  readonly expectedRevision: SeenRevision | undefined;
  /** A signal that is aborted once the client has left, or has its answer. */
  readonly gone: () => AbortSignal;
}

/** What an endpoint answers. */
export interface Answer {
  readonly status?: number;
  readonly body: unknown;
  /** The body as JSON text, where it is written out already: sent in place of `body`. */
  readonly text?: string;
  /** Of the snapshot that the answer was read from; default: what its views had passed before. */
  readonly readPosition?: Position;
  readonly headers?: Readonly<Record<string, string>>;
  /** Position of the command's last event: reads of the same agent wait for it. */
  readonly position?: Position | null;
  /** In place of the body: answers by itself, for as long as it likes. May throw as long as nothing is sent. */
  readonly stream?: (streaming: Streaming) => Promise<void>;
}

/** What an answer needs that goes on for long. */
export interface Streaming {
  readonly request: Request;
  readonly response: Response;
  /** Whether the caller would still be let in. */
  readonly counts: () => Promise<boolean>;
}

export type Method = 'get' | 'post' | 'put' | 'delete';

/**
 * An endpoint, whole: what it takes, who may call it, what it does. Validators, routes and the description of
 * the interface all come from this.
 */
export interface Endpoint {
  readonly method: Method;
  /** One path, or several that are the same; `:id` stands for a UUID. */
  readonly paths: readonly [string, ...string[]];
  /**
   * The name of its method in a generated client, at most 35 characters. By a further path of the endpoint, `Alias` is
   * added to it.
   */
  readonly operationId: string;
  /** In a line. */
  readonly summary: string;
  /** What the summary leaves out. */
  readonly description?: string;
  /** Any one of these (or `admin`) is enough; null: no token needed; empty: any valid token. */
  readonly scopes: readonly string[] | null;
  readonly body?: TSchema;
  /** The body may be left out altogether. */
  readonly bodyOptional?: boolean;
  /**
   * It is one of OAuth 2.0 (RFC 6749): it takes a form in place of JSON, and ignores what it does not know there. Input at
   * fault is answered in the form of that RFC.
   */
  readonly oauth?: boolean;
  /** Query parameters, strings as they come; all others are refused. Left out: there are none. */
  readonly query?: TSchema;
  /** Views that the answer comes from: a read waits until they have passed the caller's own commands. */
  readonly reads?: readonly Projection[];
  /**
   * Views that the answer follows from, with the path and the tools that are registered, and nothing else: not from
   * who asks, nor from when. It is kept until one of them changes; one that is asked for with a query is not.
   */
  readonly follows?: readonly Projection[];
  /** Its answers may have megabytes: a few are made at a time, each caller's in its turn. */
  readonly bulky?: boolean;
  /** A command that may carry an Idempotency-Key. */
  readonly idempotent?: boolean;
  /** A command that heeds `If-Match`. */
  readonly ifMatch?: boolean;
  /** What it answers where nothing is wrong, by status; the tests hold every answer to it. */
  readonly answers: Answers;
  /** Headers of those answers, beside the ones that follow from the rest. */
  readonly answerHeaders?: readonly AnswerHeader[];
  /** Errors beside those that follow from the rest: a 404 of an endpoint without an id in its path, say. */
  readonly refusals?: readonly ErrorCode[];
  readonly handle: (call: Call) => Promise<Answer> | Answer;
}

/** Headers that not every answer of a kind has. */
export const answerHeaders = ['ETag', 'Location', 'X-Total-Count'] as const;
export type AnswerHeader = (typeof answerHeaders)[number];

/** An endpoint whose body and query have the types of their schemas. */
export function endpoint<Body = unknown, Query = Record<string, string | undefined>>(
  definition: Omit<Endpoint, 'handle'> & {
    readonly handle: (call: Call<Body, Query>) => Promise<Answer> | Answer;
  },
): Endpoint {
  // The schemas are checked before `handle` is called, so that the types hold there.
  return definition as unknown as Endpoint;
}

/** The id at the place of a parameter of the path, such as `task_id` of `/task/:task_id/latest`. */
export function idIn({ parameters }: Pick<Call, 'parameters'>, name: string): string {
  const id = parameters[name];
  if (id === undefined) throw new Error(`the endpoint's path has no parameter ${name}`);
  return id;
}

/** The id of what a command creates: new, or the one that its Idempotency-Key stands for. */
export function createdId(
  kind: string,
  { keyed, context }: Pick<Call, 'keyed' | 'context'>,
): string {
  return keyed ? nameBasedId(kind, context.commandId) : newId(context.now);
}
