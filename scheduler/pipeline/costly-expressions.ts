import {
  withEvaluated,
  type Evaluated,
  type Expression,
  type Scope,
} from '../../domain/pipeline/expression.ts';
import { CostlyExpressionError } from '../../domain/pipeline/costly-expression-error.ts';
import { evaluateQuickly } from '../../domain/pipeline/jmespath.ts';

/** Evaluates expressions where they delay nothing else. */
export interface ExpressionEvaluator {
  /**
   * Evaluates expressions within one common limit, up to the first that fails.
   * @returns what each gave, by its text
   */
  evaluate(order: EvaluationOrder): Promise<ReadonlyMap<string, Evaluated>>;
}

/** Expressions, and what they are applied to. */
export interface EvaluationOrder {
  /** The execution of a run: its orders are carried out one after another, and take turns with those of others. */
  readonly owner: string;
  readonly texts: readonly string[];
  readonly subject:
    | {
        readonly kind: 'scope';
        readonly scope: Omit<Scope, 'secrets'>;
        /** Changes whenever `steps` does. The rest of the run (`params`, `event`) never does. */
        readonly stepsVersion: number;
      }
    | { readonly kind: 'value'; readonly value: unknown };
}

/** Templates and conditions that took too long before. Trying them again would only delay. */
const costly = new WeakSet<object>();

/**
 * Does synchronous work that evaluates expressions: at once if that takes about a millisecond, otherwise elsewhere.
 *
 * Expressions that read secrets stay here, because secrets do not leave the process's main thread.
 *
 * @param of the template or expression
 * @param work renders or evaluates it; it must have no other effects, as it may be given up and repeated
 * @param subject what the expressions are applied to
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
