import { parentPort } from 'node:worker_threads';
import {
  parseExpression,
  type Evaluated,
  type Expression,
} from '../../../domain/pipeline/expression.ts';
import { evaluateWithSharedLimit } from '../../../domain/pipeline/jmespath.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';
import { noPlacedSecrets } from '../../../domain/pipeline/placed-secrets.ts';
import { silent } from '../../../observability/telemetry.ts';
import { threadPriority } from '../../projecting/thread-priority.ts';
import {
  KeptRuns,
  type FromExpressionThread,
  type SharedScope,
  type ToExpressionThread,
} from './expression-protocol.ts';

/**
 * The thread evaluates expressions, one order at a time. It has no secrets, because expressions with secrets are not
 * sent to it.
 */

/** A lower priority than everything that answers requests. */
const NICENESS = 10;

const MAX_CACHED = 500;

const port = parentPort;
if (port === null) throw new Error('this module runs in a thread');
threadPriority(NICENESS, silent.log).lower();

const runs = new KeptRuns<SharedScope>();
const parsed = new Map<string, Expression>();

port.on('message', (order: ToExpressionThread) => {
  const subject = subjectOf(order);
  const results = evaluateWithSharedLimit(() => evaluateAll(order.texts, subject));
  port.postMessage(results satisfies FromExpressionThread);
});

function subjectOf(order: ToExpressionThread): unknown {
  if (order.kind === 'value') return order.value;
  const { owner, scope, shared } = order;
  const before = runs.use(owner) ?? { params: null, event: null, steps: {} };
  const now = { ...before, ...shared };
  runs.keep(owner, now);
  return { ...scope, ...now, secrets: noPlacedSecrets };
}

function evaluateAll(texts: readonly string[], subject: unknown): readonly Evaluated[] {
  const results: Evaluated[] = [];
  for (const text of texts) {
    try {
      results.push({ value: expressionOf(text).evaluate(subject) });
    } catch (error) {
      if (!(error instanceof PipelineError)) throw error;
      results.push({ error: error.message });
      break;
    }
  }
  return results;
}

function expressionOf(text: string): Expression {
  let expression = parsed.get(text);
  if (expression === undefined) {
    expression = parseExpression(text);
    if (parsed.size === MAX_CACHED) parsed.clear();
    parsed.set(text, expression);
  }
  return expression;
}
