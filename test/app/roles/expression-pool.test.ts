import { expect } from 'chai';
import { ExpressionPool } from '../../../app/roles/expressions/expression-pool.ts';
import { parseExpression, type Evaluated } from '../../../domain/pipeline/expression.ts';
import type { EvaluationOrder } from '../../../scheduler/pipeline/costly-expressions.ts';
import { eventually } from '../../support/signals.ts';

describe('threads that evaluate expressions', function () {
  this.timeout(60_000);
  let pool: ExpressionPool;

  beforeEach(() => {
    pool = new ExpressionPool({ size: 1 });
  });

  afterEach(() => pool.close());

  const scope = {
    now: '2026-05-01T10:00:00.000Z',
    params: { rows: [3, 1, 2], name: 'a \ud83d\ude00' },
    steps: {} as Record<string, unknown>,
    event: { id: 'e', payload: { n: 1 } },
    task: { id: 't' },
    run: { id: 'r' },
    item: { price: 7 },
    index: 4,
    callback: null,
  };

  const onScope = (
    owner: string,
    texts: readonly string[],
    steps = scope.steps,
    stepsVersion = 0,
  ): EvaluationOrder => ({
    owner,
    texts,
    subject: { kind: 'scope', scope: { ...scope, steps }, stepsVersion },
  });

  const valueOf = (values: ReadonlyMap<string, Evaluated>, text: string): unknown => {
    const found = values.get(text);
    return found !== undefined && 'value' in found ? found.value : found;
  };

  it('return the same results as a direct evaluation', async () => {
    const texts = [
      'sort(params.rows)',
      'length(params.name)',
      '[item.price, index, event.payload.n, task.id, run.id, callback]',
      "join('-', [now, now+24h])",
      'max(params.rows)',
    ];
    const values = await pool.evaluate(onScope('one', texts));
    for (const text of texts) {
      expect(valueOf(values, text), text).to.deep.equal(parseExpression(text).evaluate(scope));
    }
    const value = { kind: 'value', value: [1, 2, 3] } as const;
    const sum = await pool.evaluate({ owner: 'one', texts: ['sum(@)'], subject: value });
    expect(valueOf(sum, 'sum(@)')).to.equal(6);
  });

  it('fail with the same message as a direct evaluation, at the first expression that fails', async () => {
    const endless = 'params.rows[?length($.params.rows[?length($.params.rows) > `0`]) > `0`]';
    const rows = Array.from({ length: 1_000 }, (_, n) => n);
    const large = { ...scope, params: { rows } };
    const values = await pool.evaluate({
      owner: 'one',
      texts: ['length(params.rows)', endless, 'max(params.rows)'],
      subject: { kind: 'scope', scope: large, stepsVersion: 0 },
    });
    expect([...values.keys()]).to.deep.equal(['length(params.rows)', endless]);
    let message = '';
    try {
      parseExpression(endless).evaluate(large);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).to.include('it takes too many steps');
    expect(values.get(endless)).to.deep.equal({ error: message });
  });

  it('have no secrets', async () => {
    const values = await pool.evaluate(onScope('one', ['$.secrets.TOKEN']));
    expect(JSON.stringify(values.get('$.secrets.TOKEN'))).to.include('a secret is used whole');
  });

  it('get the results of steps as they become known, for any number of runs', async () => {
    const text = 'join(`""`, keys(steps))';
    const seen = async (run: string, names: readonly string[]): Promise<unknown> => {
      const steps = Object.fromEntries(names.map((name) => [name, 1]));
      return valueOf(await pool.evaluate(onScope(run, [text], steps, names.length)), text);
    };
    expect(await seen('one', ['a'])).to.equal('a');
    expect(await seen('one', ['a', 'b'])).to.equal('ab');
    for (let run = 0; run < 40; run += 1) {
      expect(await seen(`other-${run}`, [`x${run}`])).to.equal(`x${run}`);
    }
    expect(await seen('one', ['a', 'b'])).to.equal('ab');
    expect(await seen('other-39', ['x39'])).to.equal('x39');
  });

  it('let runs take turns', async () => {
    const order: string[] = [];
    const evaluate = async (owner: string, name: string): Promise<void> => {
      await pool.evaluate(onScope(owner, ['length(params.rows)']));
      order.push(name);
    };
    await Promise.all([
      ...[1, 2, 3, 4].map((n) => evaluate('many', `many ${n}`)),
      evaluate('one', 'one'),
      evaluate('other', 'other'),
    ]);
    expect(order).to.deep.equal(['many 1', 'many 2', 'one', 'other', 'many 3', 'many 4']);
  });

  it('reject a value that is not JSON, and continue', async () => {
    const subject = { kind: 'value', value: () => {} } as const;
    let failure: unknown;
    await pool.evaluate({ owner: 'one', texts: ['@'], subject }).catch((error: unknown) => {
      failure = error;
    });
    expect(failure).to.be.instanceOf(Error);
    const values = await pool.evaluate(onScope('one', ['index']));
    expect(valueOf(values, 'index')).to.equal(4);
  });

  it('end when they are idle, and start again', async () => {
    const brief = new ExpressionPool({ size: 2, idleMs: 1 });
    try {
      await Promise.all(['a', 'b', 'c'].map((run) => brief.evaluate(onScope(run, ['index']))));
      await eventually(() => brief.threads === 0, { what: 'the threads to end' });
      const values = await brief.evaluate(onScope('a', ['length(params.rows)']));
      expect(valueOf(values, 'length(params.rows)')).to.equal(3);
    } finally {
      await brief.close();
    }
    expect(brief.threads).to.equal(0);
  });
});
