/** An evaluation that should be quick takes longer, and was given up. */
export class CostlyExpressionError extends Error {
  override readonly name = 'CostlyExpressionError';

  constructor() {
    super('the expression takes longer than the event loop may stand still');
  }
}
