import {
  withEvaluated,
  type Evaluated,
  type Expression,
  type Scope,
} from '../../domain/pipeline/expression.ts';
import { CostlyExpressionError } from '../../domain/pipeline/costly-expression-error.ts';
import { evaluateQuickly } from '../../domain/pipeline/jmespath.ts';

/** Evaluates expressions in another thread, where they delay no other work. */
export interface ExpressionEvaluator {
  /**
   * Evaluates expressions within one common limit, up to the first that fails.
   * @returns the result of each, by its text
   */
  evaluate(order: EvaluationOrder): Promise<ReadonlyMap<string, Evaluated>>;
}

/** The input of expressions. */
export interface EvaluationOrder {
  /** The execution of a run. Its orders are carried out one after another, and take turns with those of other runs. */
  readonly owner: string;
  readonly texts: readonly string[];
  readonly subject:
    | {
        readonly kind: 'scope';
        readonly scope: Omit<Scope, 'secrets'>;
        /** Changes whenever `steps` changes. The rest of the run (`params`, `event`) never changes. */
        readonly stepsVersion: number;
      }
    | { readonly kind: 'value'; readonly value: unknown };
}

/** Templates and conditions that took too long before. Another quick try would only waste time. */
const costly = new WeakSet<object>();

/**
 * Does synchronous work that evaluates expressions: at once if that takes about a millisecond, otherwise in another
 * thread.
 *
 * Expressions that read secrets stay here, because secrets do not leave the process's main thread.
 *
 * @param of the template or expression
 * @param work renders or evaluates it; it must have no other effects, because it may be stopped and repeated
 * @param subject the input of the expressions
 */
export function evaluateAnywhere<T>(
  evaluator: ExpressionEvaluator | undefined,
  owner: string,
  of: { readonly expressions: readonly Expression[] } | Expression,
  work: () => T,
  subject: () => EvaluationOrder['subject'],
): T | Promise<T> {
  if (evaluator === undefined) return work();
  if (!costly.has(of)) {
    try {
      return evaluateQuickly(work);
    } catch (error) {
      if (!(error instanceof CostlyExpressionError)) throw error;
      costly.add(of);
    }
  }
  const expressions = 'expressions' in of ? of.expressions : [of];
  const texts = [...new Set(expressions.filter(isMovable).map(({ text }) => text))];
  if (texts.length === 0) return work();
  return evaluator
    .evaluate({ owner, texts, subject: subject() })
    .then((values) => withEvaluated(values, work));
}

/** Plain paths of fields cost nothing. */
const isMovable = ({ path, error, roots }: Expression): boolean =>
  path === null && error === null && !roots.has('secrets');
