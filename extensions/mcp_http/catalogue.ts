import { Ajv, type ValidateFunction } from 'ajv';
import type { Request } from 'express';
import {
  ExtensionError,
  type CoreResponse,
  type ExtensionCaller,
  type ExtensionContext,
  type ToolView,
} from '../contract.ts';
import { inputSchemaOf, type InputSchema } from './input-schema.ts';
import type { Parameters } from './service-requests.ts';
import { serviceTools, type ServiceTool } from './service-tools.ts';
import { exposedNames } from './tool-names.ts';

/** A tool as clients see it. */
interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: InputSchema;
}

/** The caller of a tool. */
export interface Invoker {
  readonly caller: ExtensionCaller;
  /** The client's request. A tool's own requests are made on its behalf. */
  readonly request: Request;
  /** Aborted when the client no longer waits. */
  readonly signal: AbortSignal;
}

/** The outcome of an allowed call. */
export interface Outcome {
  /** false if the tool failed. */
  readonly success: boolean;
  readonly result: Readonly<Record<string, unknown>>;
}

/** The service's interface rejected a tool's request. */
export class ServiceRefusalError extends Error {
  readonly response: CoreResponse;

  constructor(response: CoreResponse) {
    super(textOf(response.body));
    this.name = 'ServiceRefusalError';
    this.response = response;
  }
}

/** The scope for creating tasks also allows direct calls. */
const REGISTERED_SCOPE = 'tasks:write';

/** Time limit of a registered tool outside a pipeline. Milliseconds. */
const MAX_CALL_TIME = 60_000;

/** Maximum length of a tool's error message, the same as for steps. Characters. */
const MAX_LENGTH_MESSAGE = 4000;

type Parts = Pick<ExtensionContext, 'core' | 'log' | 'toolRegistry'>;

/** A tool by its exposed name. */
export type Entry = { readonly name: string } & (
  | { readonly kind: 'service'; readonly tool: ServiceTool }
  | { readonly kind: 'registered'; readonly tool: ToolView }
);

/** All tools: requests to the service's interface, and the tools registered for pipelines. */
export class Catalogue {
  readonly #context: Parts;
  readonly #mostTime: number;
  readonly #own = new Map<string, Entry>();
  // The schemas are our own. Validating them against the metaschema would take most of the time.
  readonly #ajv = new Ajv({ allErrors: true, strict: false, meta: false, validateSchema: false });

  /** @param mostTime time limit of a registered tool. Milliseconds */
  constructor(context: Parts, mostTime = MAX_CALL_TIME) {
    this.#context = context;
    this.#mostTime = mostTime;
    for (const tool of serviceTools) {
      this.#own.set(tool.name, { name: tool.name, kind: 'service', tool });
    }
  }

  /** The tools that the caller may call. */
  list(caller: ExtensionCaller): readonly Entry[] {
    const entries = [...this.#own.values(), ...this.#registered(caller).values()];
    return entries.filter((entry) => may(caller, scopeOf(entry)));
  }

  /**
   * Finds a tool by its exposed name or its name in pipelines.
   * @throws ExtensionError `not_found`; `forbidden` if the caller lacks its scope
   */
  get(name: string, caller: ExtensionCaller): Entry {
    const registered = this.#registered(caller);
    const entry =
      this.#own.get(name) ??
      registered.get(name) ??
      [...registered.values()].find(({ tool }) => tool.name === name);
    if (entry === undefined) {
      const details = { resource: 'tool', id: name };
      throw new ExtensionError('not_found', `unknown tool ${name}`, details);
    }
    const scope = scopeOf(entry);
    if (may(caller, scope)) return entry;
    throw new ExtensionError('forbidden', `${name} needs the scope ${scope}`, {
      tool: entry.tool.name,
      required_scopes: [scope],
      granted_scopes: caller.scopes,
    });
  }

  /**
   * Finds a tool for a call. Records a rejection.
   * @throws ExtensionError as {@link get}
   */
  async allowed(
    name: string,
    { caller, request: onBehalfOf }: Pick<Invoker, 'caller' | 'request'>,
  ): Promise<Entry> {
    try {
      return this.get(name, caller);
    } catch (error) {
      if (!(error instanceof ExtensionError) || error.code !== 'forbidden') throw error;
      const { code, details } = error;
      const refusal = { actAs: caller.agentId, onBehalfOf, code };
      await this.#context.toolRegistry.noteRefusal(String(details['tool']), refusal);
      throw error;
    }
  }

  /** @throws ExtensionError `bad_request` (fields under `parameters`) for invalid arguments */
  check(entry: Entry, parameters: Parameters): void {
    if (entry.kind === 'registered') return entry.tool.check(parameters);
    // Compiled on first use. Ajv caches it.
    const check = this.#ajv.compile(entry.tool.parameters);
    if (!check(parameters)) throw faultsOf(check);
  }

  /**
   * @throws ExtensionError `not_found`, `forbidden`, `bad_request` (fields under `parameters`), `unavailable`;
   *   ServiceRefusalError if the service rejects it; the signal's reason once the client no longer waits
   */
  async invoke(name: string, parameters: Parameters, invoker: Invoker): Promise<Outcome> {
    const entry = await this.allowed(name, invoker);
    this.check(entry, parameters);
    return entry.kind === 'service'
      ? this.#request(entry.tool, parameters, invoker)
      : this.#call(entry.tool, parameters, invoker);
  }

  /** The tools that pipelines of the caller's namespace can use, by exposed name. */
  #registered({ agentId: actAs }: ExtensionCaller): ReadonlyMap<string, Entry> {
    const listed = this.#context.toolRegistry.listTools({ actAs });
    const tools = new Map(listed.map((tool) => [tool.name, tool]));
    const found = new Map<string, Entry>();
    for (const [name, ofPipelines] of exposedNames([...this.#own.keys()], [...tools.keys()])) {
      const tool = tools.get(ofPipelines);
      if (tool !== undefined) found.set(name, { name, kind: 'registered', tool });
    }
    return found;
  }

  async #request(
    tool: ServiceTool,
    parameters: Parameters,
    { caller, request: onBehalfOf, signal }: Invoker,
  ): Promise<Outcome> {
    const { method, path, ...options } = tool.request(parameters, caller);
    const asked = { ...options, onBehalfOf, signal };
    const response = await this.#context.core.request(method, path, asked);
    if (response.status >= 400) throw new ServiceRefusalError(ofParameters(response));
    const body = asObject(response.body);
    return { success: true, result: tool.result?.(body) ?? body };
  }

  async #call(tool: ToolView, parameters: Parameters, invoker: Invoker): Promise<Outcome> {
    const { caller, request: onBehalfOf } = invoker;
    const signal = AbortSignal.any([invoker.signal, AbortSignal.timeout(this.#mostTime)]);
    try {
      const call = tool.call(parameters, { actAs: caller.agentId, signal, onBehalfOf });
      const result = await endedBy(signal, call);
      return { success: true, result: asObject(result) };
    } catch (error) {
      if (error instanceof ExtensionError) throw error;
      // An aborted call has no result. Otherwise, a repetition of a command with a key would return it.
      invoker.signal.throwIfAborted();
      // Never cut a surrogate pair: most JSON readers reject half of one.
      const message = messageOf(error)
        .slice(0, MAX_LENGTH_MESSAGE)
        .replace(/[\uD800-\uDBFF]$/, '');
      this.#context.log.warn('a tool failed', { tool: tool.name, agent: caller.agentId, error });
      return { success: false, result: { error: 'tool_failed', message } };
    }
  }
}

/** A tool as clients see it. */
export function describe({ name, ...entry }: Entry): ToolDescription {
  const { name: ofPipelines, description } = entry.tool;
  const schema = entry.kind === 'service' ? entry.tool.parameters : entry.tool.schema;
  // Pipelines need the other name.
  const told =
    name === ofPipelines ? description : `${description} In a pipeline: \`${ofPipelines}\`.`;
  return { name, description: told, parameters: inputSchemaOf(schema) };
}

/** Whether it is known to be read-only. */
export function changesNothing(entry: Entry): boolean {
  return entry.kind === 'service' && entry.tool.readOnly;
}

function scopeOf(entry: Entry): string {
  return entry.kind === 'service' ? entry.tool.scope : REGISTERED_SCOPE;
}

function may(caller: ExtensionCaller, scope: string): boolean {
  return caller.admin || caller.scopes.includes(scope);
}

/** Stops waiting when the signal aborts, even for a tool that ignores it. @throws the signal's reason */
function endedBy<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason as Error);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

function faultsOf({ errors }: ValidateFunction): ExtensionError {
  const issues = (errors ?? []).map(({ instancePath, params, message = 'is invalid' }) => {
    const { missingProperty, additionalProperty } = params as Readonly<Record<string, unknown>>;
    const within = instancePath.split('/').slice(1);
    const named = [missingProperty, additionalProperty].filter((each) => typeof each === 'string');
    const field = ['parameters', ...within, ...named].join('.');
    if (missingProperty !== undefined) return { field, issue: 'is required' };
    return { field, issue: additionalProperty === undefined ? message : 'is not a known field' };
  });
  const first = issues[0] ?? { field: 'parameters', issue: 'is invalid' };
  const message = `${first.field}: ${first.issue}`;
  return new ExtensionError('bad_request', message, { ...first, issues });
}

/** Fields whose names differ between the interface and the tools. */
const otherNames: Readonly<Record<string, string>> = {
  id: 'task_id',
  'If-Match': 'if_revision',
  'Idempotency-Key': 'idempotency_key',
  'X-Reason': 'reason',
};

/** A rejection whose field names are replaced by the parameter names of the call. */
function ofParameters(response: CoreResponse): CoreResponse {
  const body = asObject(response.body);
  const details = asObject(body['details']);
  const { field, issue, issues } = details;
  if (typeof field !== 'string' || typeof issue !== 'string' || !Array.isArray(issues)) {
    return response;
  }
  const named = (name: unknown): string => {
    const known = String(name);
    return known === 'body' ? 'parameters' : `parameters.${otherNames[known] ?? known}`;
  };
  const all = issues.map(asObject).map((each) => ({ ...each, field: named(each['field']) }));
  const message = `${named(field)}: ${issue}`;
  const renamed = { ...details, field: named(field), issues: all };
  return { ...response, body: { ...body, message, details: renamed } };
}

/** A result must be an object. Other values and lists are wrapped as `value`. */
function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  return { value: value ?? null };
}

/** The message of a failed tool. Never throws, whatever the tool threw. */
function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return 'the tool failed without a message';
  }
}

function textOf(body: unknown): string {
  const { message } = asObject(body);
  return typeof message === 'string' ? message : 'the service rejected the request';
}
