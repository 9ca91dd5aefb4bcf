import { Type, type Static, type TSchema } from '@sinclair/typebox';
import { parseExpression, type Expression } from '../../domain/pipeline/expression.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { toTemplateString } from '../../domain/pipeline/template.ts';
import { logLevels, ToolError, type LogLevel, type Tool, type ToolCall } from './tool.ts';

/** Types a tool's arguments by its schema, which checks them before each call. */
export function defineTool<S extends TSchema>(
  definition: Omit<Tool, 'schema' | 'run'> & {
    readonly schema: S;
    run(args: Static<S>, call: ToolCall): unknown;
  },
): Tool {
  return { ...definition, run: (args, call) => definition.run(args, call) };
}

const closed = { additionalProperties: false };

const echo = defineTool({
  name: 'echo',
  description: 'Returns its arguments as its result.',
  schema: Type.Unknown(),
  synchronous: true,
  run: (args) => args,
});

const log = defineTool({
  name: 'log',
  description: "Adds a line to the run's log.",
  schema: Type.Object(
    {
      message: Type.Unknown({
        description: 'the message; a value other than a string is written as JSON',
      }),
      level: Type.Optional(
        Type.Unsafe<LogLevel>({
          type: 'string',
          enum: [...logLevels],
          default: 'info',
          description: 'how important the line is',
        }),
      ),
      data: Type.Optional(Type.Unknown({ description: 'any JSON, kept beside the message' })),
    },
    closed,
  ),
  synchronous: true,
  run: ({ message, level, data }, call) => {
    call.log(level ?? 'info', toTemplateString(message), data);
    return { logged: true };
  },
});

const fail = defineTool({
  name: 'fail',
  description: 'Fails with a message.',
  schema: Type.Object(
    {
      message: Type.Unknown({ description: 'the error of the step' }),
      retryable: Type.Optional(
        Type.Boolean({ default: true, description: 'whether the step and its run may be retried' }),
      ),
    },
    closed,
  ),
  synchronous: true,
  run: ({ message, retryable }) => {
    throw new ToolError(toTemplateString(message), { retryable: retryable ?? true });
  },
});

const transform = defineTool({
  name: 'transform',
  description: 'Evaluates a JMESPath expression over its input.',
  schema: Type.Object(
    {
      expression: Type.String({
        minLength: 1,
        description: 'a JMESPath expression, without `${…}` around it',
      }),
      input: Type.Unknown({ description: 'the value that the expression is applied to' }),
    },
    closed,
  ),
  synchronous: true,
  evaluates: true,
  run: ({ expression, input }, call) => {
    const parsed = cachedExpression(expression);
    const evaluate = (): unknown => parsed.evaluate(input, (text) => call.mask(text));
    try {
      const value =
        call.evaluateOn === undefined ? evaluate() : call.evaluateOn(parsed, input, evaluate);
      return value instanceof Promise ? value.catch(failPermanently) : value;
    } catch (error) {
      return failPermanently(error);
    }
  },
});

/** A retry of a failed expression would fail again. */
function failPermanently(error: unknown): never {
  if (error instanceof PipelineError) throw new ToolError(error.message, { retryable: false });
  throw error;
}

const MAX_CACHED_EXPRESSIONS = 500;
const cache = new Map<string, Expression>();

/** Runs of a task evaluate the same expression again and again. */
function cachedExpression(text: string): Expression {
  const cached = cache.get(text);
  if (cached) return cached;
  const parsed = parseExpression(text);
  if (cache.size === MAX_CACHED_EXPRESSIONS) cache.clear();
  cache.set(text, parsed);
  return parsed;
}

/** The tools that need only the call itself. */
export const basicTools: readonly Tool[] = [echo, log, fail, transform];
