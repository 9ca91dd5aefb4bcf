import { expect } from 'chai';
import fc from 'fast-check';
import { ScheduleError } from '../../../domain/schedule/schedule.ts';
import {
  compileTopicPattern,
  isTopic,
  topicPatternIssue,
} from '../../../domain/schedule/topic-pattern.ts';
import { cpuMs } from '../../support/cpu-time.ts';

/** A reference implementation of matching, as simple as possible. */
function meaning(pattern: readonly string[], topic: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return topic.length === 0;
  if (first === '#') {
    return topic.some((_, i) => meaning(rest, topic.slice(i))) || meaning(rest, []);
  }
  return topic.length > 0 && (first === '*' || first === topic[0]) && meaning(rest, topic.slice(1));
}

describe('a topic pattern', () => {
  const cases: readonly [string | null, string, boolean][] = [
    [null, 'anything.at.all', true],
    ['#', 'a', true],
    ['orders', 'orders', true],
    ['orders', 'orders.created', false],
    ['orders', 'Orders', false],
    ['orders.*', 'orders.created', true],
    ['orders.*', 'orders', false],
    ['orders.*', 'orders.created.eu', false],
    ['orders.#', 'orders', true],
    ['orders.#', 'orders.created.eu', true],
    ['#.eu', 'eu', true],
    ['#.eu', 'orders.created.eu', true],
    ['#.eu', 'orders.eu.created', false],
    ['*.created', 'orders.created', true],
    ['a.#.z', 'a.z', true],
    ['a.#.z', 'a.b.c.z', true],
    ['a.#.b.*', 'a.b.b.c', true],
    ['a.#.b.*', 'a.b', false],
    ['#.#', 'a', true],
    ['*.#', 'a', true],
    ['a/b:c.*', 'a/b:c.d', true],
  ];
  for (const [pattern, topic, expected] of cases) {
    it(`${pattern ?? '(none)'} ${expected ? 'matches' : 'does not match'} ${topic}`, () => {
      expect(compileTopicPattern(pattern).matches(topic)).to.equal(expected);
    });
  }

  it('matches by its definition, for any pattern and topic', () => {
    const segments = fc.array(fc.constantFrom('a', 'b', '*', '#'), { minLength: 1, maxLength: 6 });
    const topics = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(segments, topics, (pattern, topic) => {
        const found = compileTopicPattern(pattern.join('.')).matches(topic.join('.'));
        expect(found).to.equal(meaning(pattern, topic));
      }),
      { numRuns: 2000 },
    );
  });

  it('takes little work where backtracking would take exponential time', async () => {
    const pattern = compileTopicPattern(`${'#.a.'.repeat(49)}#.b`);
    const topic = 'a.'.repeat(99) + 'a';
    const spent = await cpuMs(() => {
      for (let i = 0; i < 100; i++) expect(pattern.matches(topic)).to.equal(false);
    });
    expect(spent).to.be.below(1000);
  });

  it('is refused if a wildcard is part of a segment or a character is not allowed', () => {
    for (const pattern of ['', 'a*', 'a.#b', '**', 'a b', 'a.ü', 'a'.repeat(201)]) {
      expect(topicPatternIssue(pattern), pattern).to.be.a('string');
      expect(() => compileTopicPattern(pattern), pattern).to.throw(ScheduleError);
    }
  });
});

describe('a topic', () => {
  it('has 1–200 letters, digits and _ . : / -', () => {
    for (const topic of ['a', 'orders.created', 'A-b_c:d/e.0', 'x'.repeat(200)]) {
      expect(isTopic(topic), topic).to.equal(true);
    }
    for (const topic of ['', 'a b', 'a#', 'a.*', 'ü', 'x'.repeat(201), 'a\n']) {
      expect(isTopic(topic), topic).to.equal(false);
    }
  });
});
