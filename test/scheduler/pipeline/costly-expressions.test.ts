import { expect } from 'chai';
import type { JsonObject } from '../../../domain/json.ts';
import { parseExpression, type Evaluated } from '../../../domain/pipeline/expression.ts';
import { evaluateWithSharedLimit } from '../../../domain/pipeline/jmespath.ts';
import { noPlacedSecrets } from '../../../domain/pipeline/placed-secrets.ts';
import type {
  EvaluationOrder,
  ExpressionEvaluator,
} from '../../../scheduler/pipeline/costly-expressions.ts';
import { execute, recorder, type Given, type Went } from './pipeline-execution-harness.ts';

/** Compares each row with every other: a few hundred thousand steps. */
const COSTLY = 'length(params.rows[?length($.params.rows[?@ > `0`]) > `0`])';
const ROWS = 330;
/** Too many for one evaluation. */
const TOO_MANY_ROWS = 1_000;

/** Evaluates in the same thread, a turn of the event loop later. */
class Elsewhere implements ExpressionEvaluator {
  readonly orders: EvaluationOrder[] = [];

  async evaluate(order: EvaluationOrder): Promise<ReadonlyMap<string, Evaluated>> {
    this.orders.push(order);
    await Promise.resolve();
    const { subject } = order;
    const secrets = noPlacedSecrets;
    const on = subject.kind === 'value' ? subject.value : { ...subject.scope, secrets };
    const values = new Map<string, Evaluated>();
    evaluateWithSharedLimit(() => {
      for (const text of order.texts) {
        try {
          values.set(text, { value: parseExpression(text).evaluate(on) });
        } catch (error) {
          values.set(text, { error: (error as Error).message });
          return;
        }
      }
    });
    return values;
  }
}

describe('an expression that would delay others', () => {
  let elsewhere: Elsewhere;

  beforeEach(() => {
    elsewhere = new Elsewhere();
  });

  const rows = (count = ROWS): JsonObject => ({
    rows: Array.from({ length: count }, (_, row) => row + 1),
  });

  /** Executes with an evaluator and without, and expects the same steps. */
  async function both(given: Given): Promise<Went> {
    const atOnce = await execute(given);
    const moved = await execute({ ...given, evaluator: elsewhere });
    expect(moved.ends).to.deep.equal(atOnce.ends);
    expect(moved.output).to.deep.equal(atOnce.output);
    return moved;
  }

  const texts = (): readonly (readonly string[])[] => elsewhere.orders.map((order) => order.texts);

  it('is evaluated by the evaluator in arguments, while others are not', async () => {
    const step = {
      uses: 'echo',
      with: { costly: `\${${COSTLY}}`, name: '${params.name}', text: 'at ${now}' },
    };
    const { ends } = await both({
      pipeline: [step, { uses: 'echo', with: { cheap: '${length(params.rows)}' } }],
      params: { ...rows(), name: 'a' },
    });
    expect(ends[0]?.result).to.deep.include({ costly: ROWS, name: 'a' });
    expect(texts()).to.deep.equal([[COSTLY]]);
  });

  it('is not tried directly again once it has been costly', async () => {
    const items = [1, 2, 3];
    await both({
      pipeline: [{ uses: 'echo', for_each: items, with: `\${${COSTLY}}` }],
      params: rows(),
    });
    expect(texts()).to.deep.equal([[COSTLY], [COSTLY], [COSTLY]]);
    const subjects = elsewhere.orders.map(({ subject }) => subject);
    expect(subjects.map((each) => each.kind === 'scope' && each.scope.item)).to.deep.equal(items);
  });

  it('is evaluated by the evaluator in a condition of a step, an item or a group', async () => {
    const met = `${COSTLY} == \`${ROWS}\``;
    const unmet = `${COSTLY} == \`0\``;
    const { ends } = await both({
      pipeline: [
        { id: 'a', uses: 'echo', if: met, with: 1 },
        { id: 'b', uses: 'echo', if: unmet, with: 1 },
        { id: 'c', uses: 'echo', for_each: [1, 2], if: `item == \`2\` && ${met}`, with: 1 },
        { id: 'd', parallel: [{ id: 'e', uses: 'echo', with: 1 }], if: unmet },
      ],
      params: rows(),
    });
    const statuses = Object.fromEntries(ends.map(({ step, status }) => [step, status]));
    expect(statuses).to.deep.include({ a: 'succeeded', b: 'skipped', d: 'skipped' });
    expect(statuses).to.deep.include({ 'c[0]': 'skipped', 'c[1]': 'succeeded' });
    expect(elsewhere.orders).to.have.lengthOf(4);
  });

  it('is evaluated by the evaluator for the items of a step', async () => {
    const each = `params.rows[?length($.params.rows[?@ > \`0\`]) > \`0\`] | [:3]`;
    const { ends } = await both({
      pipeline: [{ id: 'a', uses: 'echo', for_each: `\${${each}}`, with: '${item}' }],
      params: rows(),
    });
    expect(ends.map(({ result }) => result)).to.deep.equal([1, 2, 3, null]);
    expect(texts()).to.deep.equal([[each]]);
  });

  it('is evaluated by the evaluator for the tool transform, on its input', async () => {
    const expression = 'length([?length($[?@ > `0`]) > `0`])';
    const { ends } = await both({
      pipeline: [{ uses: 'transform', with: { expression, input: '${params.rows}' } }],
      params: rows(),
    });
    expect(ends[0]?.result).to.equal(ROWS);
    expect(texts()).to.deep.equal([[expression]]);
    expect(elsewhere.orders[0]?.subject).to.deep.equal({ kind: 'value', value: rows()['rows'] });
  });

  it('fails its step as a direct evaluation does', async () => {
    const { ends } = await both({
      pipeline: [
        { uses: 'echo', with: `\${${COSTLY}}`, on_error: 'continue' },
        { uses: 'echo', if: COSTLY, with: 1, on_error: 'continue' },
        { uses: 'transform', with: { expression: 'reverse(@)', input: 1 } },
      ],
      params: rows(TOO_MANY_ROWS),
    });
    expect(ends[0]?.error).to.match(/it takes too many steps$/);
    expect(ends[1]?.error).to.match(/it takes too many steps$/);
    expect(elsewhere.orders).to.have.lengthOf(2);
  });

  it('gets no secret of the same arguments', async () => {
    const recording = recorder();
    const went = await execute({
      pipeline: [{ uses: 'tell', with: { one: `\${${COSTLY}}`, other: 'a ${secrets.TOKEN}' } }],
      params: rows(),
      secrets: { TOKEN: 'hush-hush' },
      tools: { tell: recording.run },
      evaluator: elsewhere,
    });
    expect(went.result.kind).to.equal('succeeded');
    expect(recording.calls[0]?.args).to.deep.equal({ one: ROWS, other: 'a hush-hush' });
    expect(texts()).to.deep.equal([[COSTLY]]);
    expect(elsewhere.orders[0]?.subject).to.not.have.nested.property('scope.secrets');
    expect(JSON.stringify(elsewhere.orders)).to.not.include('hush');
  });

  it('is evaluated directly if there is no evaluator', async () => {
    const { ends, atOnce } = await execute({
      pipeline: [{ uses: 'echo', with: `\${${COSTLY}}` }],
      params: rows(),
    });
    expect(ends[0]?.result).to.equal(ROWS);
    expect(atOnce).to.equal(true);
  });
});
