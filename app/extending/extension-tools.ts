import type { Clock } from '../../domain/clock.ts';
import { stringifyExactly } from '../../domain/exact-numbers.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { ArgumentError } from '../../domain/pipeline/arguments.ts';
import {
  truncateTo,
  MAX_RESULT_BYTES,
  toPlainJson,
  limitMembers,
} from '../../domain/pipeline/json-size.ts';
import type { Log } from '../../observability/telemetry.ts';
import {
  evaluateAnywhere,
  type ExpressionEvaluator,
} from '../../scheduler/pipeline/costly-expressions.ts';
import type { ToolRegistry } from '../../scheduler/tools/registry.ts';
import { logLevels, ToolError, type ToolCall } from '../../scheduler/tools/tool.ts';
import { ExtensionError } from '../../extensions/contract.ts';
import type { Causation } from '../causation.ts';
import type { DirectCalls } from './direct-calls.ts';
import { toReadableError } from '../../extensions/host/extension.ts';
import type {
  ProvidedTool,
  RequestOrigin,
  ToolPort,
  ToolUser,
} from '../../extensions/host/ports.ts';

/** No namespace has this name, so it has no workers. */
const NOWHERE = '';

/**
 * The tool registry of this process, as extensions see it.
 * @param direct makes the calls of clients' requests
 * @param causation learns which run's step an extension's tool executes
 * @param evaluator evaluates costly expressions; without it, they are evaluated at once
 */
export function toolPort(
  registry: ToolRegistry,
  clock: Clock,
  log: Log,
  direct: Pick<DirectCalls, 'carryOut' | 'refused'>,
  causation: Pick<Causation, 'during'>,
  evaluator?: ExpressionEvaluator,
): ToolPort {
  const view = (name: string, user: ToolUser): ProvidedTool | undefined => {
    const { extensionId: caller } = user;
    const found = registry.of(user.namespace ?? NOWHERE).find(name);
    if (found === undefined) return undefined;
    const { tool } = found;
    const check = (args: unknown): void => rejectArguments(found.check(args));
    return {
      name,
      description: tool.description,
      schema: frozen(tool.schema),
      check,
      async call(args, { actAs, namespace, signal = new AbortController().signal, origin }) {
        check(args);
        const id = origin?.commandId ?? newId(clock.now());
        const run = async (): Promise<unknown> =>
          tool.run(args as JsonValue, {
            signal,
            idempotencyKey: id,
            clock,
            runId: id,
            taskId: id,
            step: name,
            actAs,
            namespace,
            // Only pipelines have secrets.
            mask: (text) => text,
            origin: originOf(origin) ?? { source: 'extension', correlationId: id },
            evaluateOn: (expression, value, work) =>
              evaluateAnywhere(evaluator, actAs, expression, work, () => ({
                kind: 'value',
                value,
              })),
            log: (level, message, data) => log[level](message, { tool: name, caller, data }),
          });
        // Without an origin, it is called within a run, or by an extension on its own.
        const result =
          origin === undefined
            ? await run()
            : await direct.carryOut({ tool: name, actAs, namespace, origin, signal }, run);
        return truncateTo(MAX_RESULT_BYTES, toPlainJson(plain(result))).value;
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
          // The extension gets copies, so it cannot change the pipeline or the recorded result later.
          const work = async (): Promise<unknown> => func(plain(args), forExtension(call));
          try {
            const { runId, origin } = call;
            return plain(await (origin === undefined ? causation.during({ runId }, work) : work()));
          } catch (error) {
            throw safeError(error);
          }
        },
      });
    },
    unregister: (name) => registry.unregister(name),
    list: (user) =>
      registry
        .of(user.namespace ?? NOWHERE)
        .list()
        .flatMap(({ name }) => {
          const found = view(name, user);
          return found === undefined ? [] : [found];
        }),
    get: view,
    noteRefusal: (name, refusal) => direct.refused({ tool: name, ...refusal }, refusal.code),
  };
}

/** @throws ExtensionError `bad_request` if there are any, with fields under `parameters` */
function rejectArguments(errors: readonly ArgumentError[]): void {
  const issues = errors.map(({ path, issue }) => ({
    field: ['parameters', ...path].join('.'),
    issue,
  }));
  const [first] = issues;
  if (first === undefined) return;
  const message = `${first.field}: ${first.issue}`;
  throw new ExtensionError('bad_request', message, { ...first, issues });
}

/** The origin of a call, without the command id. */
function originOf(origin: RequestOrigin | undefined): RequestOrigin | undefined {
  if (origin === undefined) return undefined;
  const { source, correlationId, reason } = origin;
  return { source, correlationId, reason };
}

/** @throws ToolError for a value that is not JSON; undefined counts as null */
function plain(value: unknown): unknown {
  const { copy, problem } = copyOf(value ?? null);
  if (problem === null) return copy;
  throw new ToolError(`the result is not JSON: ${problem}`, { retryable: false });
}

/**
 * Copies a value as JSON. Never throws.
 * @returns `problem` if it is not JSON: it has a cycle, a bigint, a function, a symbol, NaN or infinity, is nested too
 *   deep, or throws when it is read
 */
function copyOf(value: unknown): { readonly copy?: unknown; readonly problem: string | null } {
  try {
    const { text, lost } = stringifyExactly(limitMembers(value));
    if (text === undefined) return { problem: `a ${typeof value} cannot be represented` };
    const [infinite] = lost.filter(({ at }) => at === -1);
    if (infinite === undefined) return { copy: JSON.parse(text) as unknown, problem: null };
    const { path, digits } = infinite;
    return { problem: `${path.length === 0 ? '' : `${path.join('.')}: `}JSON has no ${digits}` };
  } catch (error) {
    const why = firstLineOf(toReadableError(error));
    return { problem: why === '' ? 'it cannot be read' : why };
  }
}

/** The first line of an error's message; empty without one. */
function firstLineOf(error: unknown): string {
  const [line = ''] = error instanceof Error ? error.message.split('\n', 1) : [];
  return line;
}

/** A call whose log accepts any values of an extension and copies them at once. */
function forExtension(call: ToolCall): ToolCall {
  return {
    ...call,
    signal: call.signal,
    log: (level: unknown, message: unknown, data?: unknown) => {
      const known = logLevels.find((each) => each === level) ?? 'info';
      if (data === undefined) return call.log(known, asString(message));
      const { copy, problem } = copyOf(data);
      call.log(known, asString(message), problem === null ? copy : `not JSON: ${problem}`);
    },
  };
}

/** Never throws. */
function asString(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return String(value);
  } catch {
    return 'a value that cannot be shown';
  }
}

/** Freezes a value deeply: all extensions share it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) frozen(each);
  return value;
}

/** Converts a value that a tool threw into an error that is safe to read. Keeps its `retryable`. Never throws. */
function safeError(error: unknown): unknown {
  const shown = toReadableError(error);
  try {
    if (!(shown instanceof Error) || shown instanceof ToolError) return shown;
    const { retryable } = error as { readonly retryable?: unknown };
    if (typeof retryable !== 'boolean') return shown;
    return new ToolError(shown.message, { retryable, cause: shown });
  } catch {
    // Its `retryable` cannot be read.
    return shown;
  }
}
