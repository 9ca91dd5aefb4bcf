import type { Projection, Query } from '../../../projections/read-model.ts';
import { compileFind, isAtKnownPlace, type Statement } from './query-sql.ts';

/** Forms of queries that are remembered of a projection; the service has few. */
const KEPT = 100;

/**
 * The queries for one document at a known place of an index. They come with every request, so that their text is
 * made once for each form, and not anew with other values.
 */
export class KnownPlaces {
  readonly #forms = new WeakMap<object, Map<string, string | null>>();

  /** The statement, without its limit; null for any other query. @throws TypeError as `compileFind` does */
  statementOf(projection: Projection, query: Query): Statement | null {
    const forms = this.#formsOf(projection);
    const form = formOf(query);
    const known = forms.get(form);
    if (known === null) return null;
    if (known !== undefined) {
      return { sql: known, parameters: query.filters.flatMap(parametersOf) };
    }
    const statement = isAtKnownPlace(projection, query)
      ? (compileFind(projection, query).plans.rare[0] ?? null)
      : null;
    if (forms.size >= KEPT) forms.clear();
    forms.set(form, statement?.sql ?? null);
    return statement;
  }

  #formsOf(projection: Projection): Map<string, string | null> {
    let forms = this.#forms.get(projection);
    if (forms === undefined)
      this.#forms.set(projection, (forms = new Map<string, string | null>()));
    return forms;
  }
}

/** What of a query its text depends on: the values only by what they are. */
function formOf({ filters, sort, limit, offset = 0, after }: Query): string {
  let form = limit > 2 || offset > 0 || after !== undefined ? 'page' : 'one';
  for (const { field, op, value } of filters) {
    form += ` ${op} ${field} ${value === null ? 'null' : typeof value}`;
  }
  for (const { field, direction } of sort) form += ` by ${field} ${direction}`;
  return form;
}

function parametersOf({ value }: Query['filters'][number]): Statement['parameters'] {
  if (value === null || typeof value === 'object') return [];
  return [typeof value === 'boolean' ? Number(value) : value];
}
