import type { Clock } from '../../domain/clock.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { ArgumentFault } from '../../domain/pipeline/arguments.ts';
import {
  cutTo,
  MAX_RESULT_BYTES,
  requireFewLevels,
  toPlainJson,
} from '../../domain/pipeline/size.ts';
import type { Log } from '../../observability/telemetry.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { ToolError } from '../../scheduler/tools/tool.ts';
import { ExtensionError } from '../../extensions/contract.ts';
import { readable } from '../../extensions/host/extension.ts';
import type { LentTool, RequestOrigin, ToolPort } from '../../extensions/host/ports.ts';

/** The tool registry of this process, as extensions see it. */
export function toolPort(registry: ToolRegistry, clock: Clock, log: Log): ToolPort {
  const view = (name: string, caller: string): LentTool | undefined => {
    const found = registry.find(name);
    if (found === undefined) return undefined;
    const { tool } = found;
    const check = (args: unknown): void => refuseFaults(found.check(args));
    return {
      name,
      description: tool.description,
      schema: frozen(tool.schema),
      check,
      async call(args, { actAs, signal, origin }) {
        check(args);
        const id = origin?.commandId ?? newId(clock.now());
        const result: unknown = await tool.run(args as JsonValue, {
          signal: signal ?? new AbortController().signal,
          idempotencyKey: id,
          clock,
          runId: id,
          taskId: id,
          step: name,
          actAs,
          // Secrets are a pipeline's affair.
          mask: (text) => text,
          origin: fromOf(origin) ?? { source: 'extension', correlationId: id },
          log: (level, message, data) => log[level](message, { tool: name, caller, data }),
        });
        return cutTo(MAX_RESULT_BYTES, toPlainJson(plain(result))).value;
      },
    };
  };
  return {
    register: (name, description, schema, func) => {
      registry.register({
        name,
        description,
        schema,
        run: async (args, call) => {
          try {
            // Copies: what the extension does to them later changes neither the pipeline nor what is recorded.
            return plain(await func(plain(args), call));
          } catch (error) {
            throw thrownBy(error);
          }
        },
      });
    },
    unregister: (name) => registry.unregister(name),
    list: (caller) =>
      registry.list().flatMap(({ name }) => {
        const found = view(name, caller);
        return found === undefined ? [] : [found];
      }),
    get: view,
  };
}

/** @throws ExtensionError `bad_request` where there are any, with fields below `parameters` */
function refuseFaults(faults: readonly ArgumentFault[]): void {
  const issues = faults.map(({ path, issue }) => ({
    field: ['parameters', ...path].join('.'),
    issue,
  }));
  const [first] = issues;
  if (first === undefined) return;
  const message = `${first.field}: ${first.issue}`;
  throw new ExtensionError('bad_request', message, { ...first, issues });
}

/** Who is behind a call; the id of the command is the call's own affair. */
function fromOf(origin: RequestOrigin | undefined): RequestOrigin | undefined {
  if (origin === undefined) return undefined;
  const { source, correlationId, reason } = origin;
  return { source, correlationId, reason };
}

/** @throws ToolError for what is no JSON: a circle or what is nested too deep, a bigint, what throws when it is read */
function plain(value: unknown): unknown {
  try {
    requireFewLevels(value);
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? null : (JSON.parse(text) as unknown);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : 'it can not be read';
    throw new ToolError(`the result is no JSON: ${why}`, { retryable: false });
  }
}

/** What is shown to extensions is what all others are shown. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) frozen(each);
  return value;
}

/**
 * What a tool threw, so that looking at it throws nothing; an error that says whether trying again helps is taken at
 * its word. Never throws.
 */
function thrownBy(error: unknown): unknown {
  const shown = readable(error);
  try {
    if (!(shown instanceof Error) || shown instanceof ToolError) return shown;
    const { retryable } = error as { readonly retryable?: unknown };
    if (typeof retryable !== 'boolean') return shown;
    return new ToolError(shown.message, { retryable, cause: shown });
  } catch {
    // Whether trying again helps can't be asked of it.
    return shown;
  }
}
