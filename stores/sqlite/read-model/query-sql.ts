import type {
  FieldKind,
  Filter,
  Projection,
  Query,
  Sort,
  ValuesQuery,
} from '../../../projections/read-model.ts';
import { chooseIndex, mergeableIn, type InFilter } from './index-choice.ts';
import { countByTally } from './tallies.ts';
import { columnsOf, listTable, type Cell, type Column } from './view-table.ts';

/** Queries as SQL. Values are always parameters; names come from the projection's declared fields. Null sorts first. */

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly Cell[];
}

/** Statements to run in order until there are enough rows. Each takes the number of missing rows as its first parameter. */
export type Plan = readonly Statement[];

/** A query as a reader runs it. */
export interface CompiledQuery {
  /**
   * Counts, up to {@link COMMON_ROWS}, the rows of a string list's value. With fewer rows, `plans.rare` collects and sorts
   * them; with more, `plans.common` walks an index and tests each row.
   */
  readonly probe: Statement | null;
  readonly plans: { readonly rare: Plan; readonly common: Plan };
}

/** Rows from which a value of a string list counts as common. */
export const COMMON_ROWS = 1_000;

/** Returns rows of (key, position, document). @throws TypeError when the query does not fit the projection's fields */
export function compileFind(projection: Projection, query: Query): CompiledQuery {
  if (query.after !== undefined && (query.offset ?? 0) > 0) {
    throw new TypeError('a query takes either an offset or a place to continue after');
  }
  const fields = new QueryCompiler(projection);
  const { filters, sort } = query;
  return fields.compiled(filters, sort, (where) =>
    query.after === undefined
      ? [fields.page({ where, filters, sort }, query.offset ?? 0)]
      : fields.pagesAfter({ where, filters, sort }, query.after),
  );
}

/**
 * Returns one row, whose third column is a JSON array with the key and the field values of each document. Booleans are
 * numbers. @throws TypeError when the query does not fit the projection's fields
 */
export function compileValues(
  projection: Projection,
  { filters, fields }: ValuesQuery,
): CompiledQuery {
  return new QueryCompiler(projection).values(filters, fields);
}

/**
 * Whether a query asks for one or two documents at a known place of an index: its conditions and its order together are
 * exactly one index. It then costs no more than a read by key, however many documents there are.
 */
export function isPointQuery({ indexes }: Projection, query: Query): boolean {
  const { filters, sort, limit, offset = 0, after } = query;
  if (limit > 2 || offset > 0 || after !== undefined) return false;
  if (!filters.every(({ op }) => op === 'eq')) return false;
  if (sort.some(({ direction }) => direction !== sort[0]?.direction)) return false;
  const equal = new Set(filters.map(({ field }) => field));
  if (equal.size < filters.length) return false;
  return indexes.some(
    (index) =>
      // A further field would come before the key, which ends every order.
      index.length === equal.size + sort.length &&
      index.slice(0, equal.size).every((field) => equal.has(field)) &&
      sort.every(({ field }, i) => index[equal.size + i] === field),
  );
}

/** Returns one row with one number. @throws TypeError when the filters do not fit the projection's fields */
export function compileCount(projection: Projection, filters: readonly Filter[]): CompiledQuery {
  const fields = new QueryCompiler(projection);
  const only = filters.length === 1 ? filters[0] : undefined;
  if (only?.op === 'has') {
    const { column } = fields.condition(only, {});
    const sql = `SELECT count(*) FROM ${listTable(column)} WHERE value = ?`;
    const plan = [{ sql, parameters: [only.value] }];
    return { probe: null, plans: { rare: plan, common: plan } };
  }
  const tallied = countByTally(projection, columnsOf(projection), filters);
  if (tallied === null) return fields.counted(filters);
  for (const filter of filters) fields.condition(filter, {});
  const edges = tallied.edges.flatMap((edge) => fields.counted(edge).plans.rare);
  const plan = tallied.sum === null ? edges : [tallied.sum, ...edges];
  return { probe: null, plans: { rare: plan, common: plan } };
}

interface Where {
  readonly sql: string;
  readonly parameters: readonly Cell[];
}

/** A query without its limit and offset. */
interface Listing {
  readonly where: Where;
  readonly filters: readonly Filter[];
  readonly sort: readonly Sort[];
}

/** How conditions are phrased. */
interface ConditionOptions {
  /** Collect the rows of a string list, instead of testing each row. */
  readonly rare?: boolean;
  /** The fields of the chosen index, as far as it is used; null leaves the choice to the planner. */
  readonly index?: ReadonlySet<string> | null;
}

const NO_INDEX: ReadonlySet<string> = new Set();

class QueryCompiler {
  readonly #projection: Projection;
  readonly #columns: ReadonlyMap<string, Column>;

  constructor(projection: Projection) {
    this.#projection = projection;
    this.#columns = new Map(columnsOf(projection).map((column) => [column.field, column]));
  }

  compiled(
    filters: readonly Filter[],
    sort: readonly Sort[],
    plan: (where: Where) => Plan,
  ): CompiledQuery {
    const has = filters.find(({ op }) => op === 'has');
    const index = chooseIndex(this.#projection, filters, sort);
    // A rare value's rows are few, so no other index is used.
    const collected = has === undefined ? index : NO_INDEX;
    const rare = plan(this.#where(filters, { rare: true, index: collected }));
    if (has?.op !== 'has') return { probe: null, plans: { rare, common: rare } };
    const { column } = this.condition(has, {});
    const probe = {
      sql: `SELECT count(*) FROM (SELECT 1 FROM ${listTable(column)} WHERE value = ? LIMIT ${String(COMMON_ROWS)})`,
      parameters: [has.value],
    };
    return { probe, plans: { rare, common: plan(this.#where(filters, { index })) } };
  }

  counted(filters: readonly Filter[]): CompiledQuery {
    return this.compiled(filters, [], ({ sql, parameters }) => [
      { sql: `SELECT count(*) FROM documents WHERE ${sql}`, parameters },
    ]);
  }

  values(filters: readonly Filter[], fields: readonly string[]): CompiledQuery {
    const columns = fields.map((field) => `, ${this.#singleColumn(field).name}`).join('');
    return this.compiled(filters, [], ({ sql, parameters }) => [
      {
        sql: numbered(
          `SELECT '', '', json_group_array(json_array(key${columns})) FROM documents WHERE ${sql} LIMIT ?1`,
        ),
        parameters,
      },
    ]);
  }

  /** The first page. An `in` at the front of an index is read value by value, and merged in order. */
  page({ where, filters, sort }: Listing, offset: number): Statement {
    const skip = offset > 0 ? ` OFFSET ${String(Math.trunc(offset))}` : '';
    const merged = mergeableIn(this.#projection, filters, sort);
    const nothing = { sql: [], parameters: [] };
    if (merged !== undefined) return this.#merge(merged, filters, sort, nothing, 0, skip);
    const sql = `SELECT key, position, document FROM documents WHERE ${where.sql} ORDER BY ${this.#order(sort)} LIMIT ?1${skip}`;
    return { sql: numbered(sql), parameters: where.parameters };
  }

  /**
   * The rows strictly after a place. First those equal in all but the last part of the order and beyond it there, then
   * those equal in all but the last two, and so on. Each is one range of one index, also for nulls; a single condition
   * with `or` would be sorted.
   */
  pagesAfter(
    { where, filters, sort }: Listing,
    after: NonNullable<Query['after']>,
  ): readonly Statement[] {
    if (after.values.length !== sort.length) {
      throw new TypeError('a place needs one value for each sort field');
    }
    const places = sort.map(({ field, direction }, i) => {
      const column = this.#column(field);
      const value = after.values[i] ?? null;
      return { name: column.name, direction, value: value === null ? null : cell(column, value) };
    });
    places.push({ name: 'key', direction: lastDirection(sort), value: after.key });
    const merged = mergeableIn(this.#projection, filters, sort);
    const statements: Statement[] = [];
    for (let equal = places.length - 1; equal >= 0; equal -= 1) {
      const same = places.slice(0, equal);
      const place = places[equal];
      if (place === undefined) continue;
      for (const range of beyond(place)) {
        // The key is never null, and filters may exclude nulls; searching for them would scan all rows.
        const isNever = filters.some((filter) => asksForValue(filter, sort[equal]?.field));
        if (range === 'IS NULL' && (place.name === 'key' || isNever)) continue;
        const conditions = [
          ...same.map(({ name, value }) => `${name} ${value === null ? 'IS NULL' : '= ?'}`),
          `${place.name} ${range}`,
        ];
        const values = [...same, ...(range.endsWith('?') ? [place] : [])]
          .map(({ value }) => value)
          .filter((value) => value !== null);
        if (merged !== undefined) {
          const behind = { sql: conditions, parameters: values };
          statements.push(this.#merge(merged, filters, sort, behind, equal, ''));
          continue;
        }
        const sql = `SELECT key, position, document FROM documents WHERE ${[...conditions, where.sql].join(' AND ')} ORDER BY ${this.#order(sort, equal)} LIMIT ?1`;
        statements.push({ sql: numbered(sql), parameters: [...values, ...where.parameters] });
      }
    }
    return statements;
  }

  /**
   * A page over several values of a field. Each value's rows are in order in the index, and SQLite merges compound
   * selects row by row, so only the page's documents are read.
   * @param behind further conditions besides the filters
   * @param fixed number of leading order parts that are equal in all rows
   */
  #merge(
    merged: InFilter,
    filters: readonly Filter[],
    sort: readonly Sort[],
    behind: { readonly sql: readonly string[]; readonly parameters: readonly Cell[] },
    fixed: number,
    skip: string,
  ): Statement {
    const index = chooseIndex(this.#projection, filters, sort);
    const rest = this.#where(
      filters.filter((filter) => filter !== merged),
      { index },
    );
    const column = this.#column(merged.field);
    const sortColumns = sort.map(({ field }) => `, ${this.#column(field).name}`).join('');
    const part = `SELECT id, key${sortColumns} FROM documents WHERE ${[`${column.name} = ?`, ...behind.sql, rest.sql].join(' AND ')}`;
    const values = [...new Set(merged.value)];
    const found = `${values.map(() => part).join(' UNION ALL ')} ORDER BY ${this.#order(sort, fixed)} LIMIT ?1${skip}`;
    const sql = `SELECT documents.key, documents.position, documents.document FROM (${found}) AS page CROSS JOIN documents ON documents.id = page.id ORDER BY ${this.#order(sort, fixed, 'page.')}`;
    return {
      sql: numbered(sql),
      parameters: values.flatMap((value) => [
        cell(column, value),
        ...behind.parameters,
        ...rest.parameters,
      ]),
    };
  }

  condition(
    filter: Filter,
    { rare = false, index = null }: ConditionOptions,
  ): Where & { readonly column: Column } {
    const column = this.#column(filter.field);
    // The plus keeps the planner, which has no statistics, away from another index.
    const name = `${index === null || index.has(filter.field) ? '' : '+'}${column.name}`;
    switch (filter.op) {
      case 'eq':
        return filter.value === null
          ? { column, sql: `${name} IS NULL`, parameters: [] }
          : { column, sql: `${name} = ?`, parameters: [cell(column, filter.value)] };
      case 'in': {
        const values = filter.value.map((value) => cell(column, value));
        return values.length <= 100
          ? { column, sql: `${name} IN (${values.map(() => '?').join(', ')})`, parameters: values }
          : {
              column,
              sql: `${name} IN (SELECT value FROM json_each(?))`,
              parameters: [JSON.stringify(values)],
            };
      }
      case 'contains':
        requireKind(column, 'text');
        return {
          column,
          // LIKE stops at a NUL and limits its pattern. lower() folds only ASCII, as wanted.
          sql: `instr(lower(${column.name}), ?) > 0`,
          parameters: [lowerAscii(filter.value)],
        };
      case 'has': {
        requireKind(column, 'text-list');
        const table = listTable(column);
        return {
          column,
          sql: rare
            ? `id IN (SELECT id FROM ${table} WHERE value = ?)`
            : // The plus keeps the planner from turning it into a join that has to be sorted.
              `+EXISTS (SELECT 1 FROM ${table} AS entry WHERE entry.value = ? AND entry.id = documents.id)`,
          parameters: [filter.value],
        };
      }
      default:
        if (column.kind === 'boolean') throw misfit(column, filter.op);
        return {
          column,
          sql: `${name} ${comparisons[filter.op]} ?`,
          parameters: [cell(column, filter.value)],
        };
    }
  }

  #where(filters: readonly Filter[], { rare = false, index = null }: ConditionOptions): Where {
    // Only one list is collected; the others are tested on its rows.
    const first = filters.find(({ op }) => op === 'has');
    const conditions = filters.map((filter) =>
      this.condition(filter, { rare: rare && filter === first, index }),
    );
    return {
      sql: conditions.length === 0 ? 'TRUE' : conditions.map(({ sql }) => sql).join(' AND '),
      parameters: conditions.flatMap(({ parameters }) => parameters),
    };
  }

  /** The order, without its first `fixed` parts. */
  #order(sort: readonly Sort[], fixed = 0, table = ''): string {
    const parts = sort.map(
      ({ field, direction }) => `${table}${this.#singleColumn(field).name}${descending(direction)}`,
    );
    const key = `${table}key${descending(lastDirection(sort))}`;
    return [...parts, key].slice(fixed).join(', ');
  }

  #singleColumn(field: string): Column {
    const column = this.#column(field);
    if (column.kind === 'text-list') throw misfit(column, 'a single value');
    return column;
  }

  #column(field: string): Column {
    const column = this.#columns.get(field);
    if (column === undefined) {
      throw new TypeError(`${this.#projection.name} has no queried field "${field}"`);
    }
    return column;
  }
}

const comparisons = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** The conditions, in order, for values after one. */
function beyond(place: {
  readonly direction: Sort['direction'];
  readonly value: Cell;
}): readonly string[] {
  if (place.direction === 'ascending') return [place.value === null ? 'IS NOT NULL' : '> ?'];
  return place.value === null ? [] : ['< ?', 'IS NULL'];
}

function asksForValue({ field, op, value }: Filter, of: string | undefined): boolean {
  return field === of && (op !== 'eq' || value !== null);
}

function lastDirection(sort: readonly Sort[]): Sort['direction'] {
  return sort.at(-1)?.direction ?? 'ascending';
}

function descending(direction: Sort['direction']): string {
  return direction === 'descending' ? ' DESC' : '';
}

/** A value as its column stores it. @throws TypeError when it is of another kind */
function cell(column: Column, value: string | number | boolean): Cell {
  const kinds: Record<FieldKind, string> = {
    text: 'string',
    number: 'number',
    boolean: 'boolean',
    'text-list': '',
  };
  if (typeof value !== kinds[column.kind]) throw misfit(column, `a ${typeof value}`);
  return typeof value === 'boolean' ? Number(value) : value;
}

function requireKind(column: Column, kind: FieldKind): void {
  if (column.kind !== kind) throw misfit(column, kind);
}

function misfit(column: Column, what: string): TypeError {
  return new TypeError(`the field "${column.field}" is a ${column.kind}; ${what} does not fit it`);
}

function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Numbers the parameters, because the limit (`?1`) comes first and may be used repeatedly. */
function numbered(sql: string): string {
  let number = 1;
  return sql.replaceAll(/\?(?!1\b)/g, () => `?${String((number += 1))}`);
}
