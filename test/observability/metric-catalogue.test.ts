import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { counters, histograms } from '../../observability/metric-catalogue.ts';
import { auditChecks } from '../../scheduler/audit/audit.ts';
import { scan, type Token } from '../support/architecture/source-tokens.ts';
import { typescriptFiles } from '../support/architecture/typescript-files.ts';
import { projectRoot } from '../support/project-root.ts';

interface Use {
  readonly method: string;
  readonly name: string;
  /** Undefined if the call does not spell them out. */
  readonly labels: readonly string[] | undefined;
  readonly place: string;
}

/** Every `telemetry.count('…', {…})` and `telemetry.observe('…', n, {…})` of a source. */
function usesIn(path: string, tokens: readonly Token[]): readonly Use[] {
  return tokens.flatMap((token, index) => {
    const [owner, dot, open] = [tokens[index - 2], tokens[index - 1], tokens[index + 1]];
    const name = tokens[index + 2];
    const called = dot?.text === '.' && open?.text === '(' && name?.kind === 'string';
    if (!called || !/^#?telemetry$/.test(owner?.text ?? '')) return [];
    if (token.text !== 'count' && token.text !== 'observe') return [];
    const place = `${path}:${String(token.line)}`;
    return [{ method: token.text, name: name.text, labels: labelsAt(tokens, index + 3), place }];
  });
}

/** The names in the object literal that ends the call's arguments; none when no argument follows. */
function labelsAt(tokens: readonly Token[], start: number): readonly string[] | undefined {
  const labels: string[] = [];
  let depth = 0;
  let braces = 0;
  for (let index = start; index < tokens.length; index += 1) {
    const { text, kind } = tokens[index] as Token;
    const before = tokens[index - 1]?.text;
    if (text === ')' && depth === 0) return braces > 0 || index === start ? labels : undefined;
    if (kind === 'word' && depth === 1 && braces === 1 && (before === '{' || before === ',')) {
      labels.push(text);
    }
    if (text === '{' && depth === 0) braces += 1;
    if (kind === 'mark' && ['(', '{', '['].includes(text)) depth += 1;
    if (kind === 'mark' && [')', '}', ']'].includes(text)) depth -= 1;
  }
  return undefined;
}

describe('the catalogue of metrics', () => {
  const uses = typescriptFiles(projectRoot)
    .filter((path) => !/^(test|bench|examples)\//.test(path))
    .flatMap((path) => usesIn(path, scan(readFileSync(join(projectRoot, path), 'utf8')).tokens));

  it('has every metric that the code counts or observes, with exactly its labels', () => {
    expect(uses).to.not.have.lengthOf(0);
    const faults = uses.flatMap(({ method, name, labels, place }) => {
      const catalogue: Readonly<Record<string, { readonly labels: readonly string[] }>> =
        method === 'count' ? counters : histograms;
      const known = catalogue[name];
      if (known === undefined) return [`${place} uses ${name}, which is in no catalogue`];
      const fits =
        labels === undefined || labels.toSorted().join() === known.labels.toSorted().join();
      return fits ? [] : [`${place} uses ${name} with {${labels.join()}}`];
    });
    expect(faults.join('\n')).to.equal('');
  });

  it('names metrics as Prometheus does', () => {
    for (const name of Object.keys(counters)) expect(name).to.match(/^[a-z][a-z0-9_]*_total$/);
    for (const name of Object.keys(histograms)) expect(name).to.match(/^[a-z][a-z0-9_]*_seconds$/);
  });

  it('names every check of the audits', () => {
    const names = typescriptFiles(projectRoot)
      .filter((path) => path.startsWith('scheduler/audit/'))
      .flatMap((path) => [
        ...readFileSync(join(projectRoot, path), 'utf8').matchAll(/readonly name = '(\w+)'/g),
      ])
      .map(([, name]) => name);
    expect(names.toSorted()).to.deep.equal([...auditChecks].toSorted());
  });

  it('has ascending buckets', () => {
    for (const { buckets } of Object.values(histograms)) {
      expect(buckets.toSorted((one, other) => one - other)).to.deep.equal(buckets);
    }
  });

  it('is compared with the metrics and labels that a source uses', () => {
    const source =
      "this.#telemetry.count('a_total', { b: f({ c }), d });\ntelemetry.observe('e', 1);";
    const found = usesIn('x.ts', scan(source).tokens);
    expect(found.map(({ name }) => name)).to.deep.equal(['a_total', 'e']);
    expect(found[0]?.labels).to.deep.equal(['b', 'd']);
  });
});
