/** An evaluation that had to be quick took too long and was stopped. */
export class CostlyExpressionError extends Error {
  override readonly name = 'CostlyExpressionError';

  constructor() {
    super('the expression takes longer than the event loop may be blocked');
  }
}
