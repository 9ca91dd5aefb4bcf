import { errorStatuses } from '../../api/errors.ts';
import type { Observation } from '../support/interface-record.ts';
import type { ElsewhereShown } from './interface-elsewhere.ts';
import { conventions, type Need } from './interface-needs.ts';

/** One item for a test to show: a status, a header, or a field. */
interface Item {
  /** As the page writes it: `` `200` ``, `` takes `limit` ``. */
  readonly shown: string;
  readonly isShownBy: (observation: Observation) => boolean;
}

/** A section of the page with its required items. */
interface Section {
  readonly heading: string;
  readonly items: readonly Item[];
}

const code = (text: string): string => `\`${text}\``;

const nameOf = ({ file, title }: { readonly file: string; readonly title: string }): string =>
  `${code(file)}: ${title}`;

/**
 * The items that tests must show, by section: endpoints by each of their paths, schemas, the fields
 * shared by all lists, and errors.
 */
export function sectionsOf(needs: readonly Need[]): readonly Section[] {
  const endpoints = needs.flatMap(({ paths, statuses, headers, fields }) =>
    paths.map((path, index) => ({
      heading: code(path),
      items: [
        ...statuses.map((status) => ({
          shown: code(status),
          isShownBy: (seen: Observation) =>
            seen.endpoint === path && seen.status === Number(status),
        })),
        ...headers.map((name) => ({
          shown: code(name),
          isShownBy: (seen: Observation) =>
            seen.endpoint === path && seen.headers.includes(name.toLowerCase()),
        })),
        ...(index > 0 ? [] : (fields ?? []))
          .filter(([, of]) => paths.includes(of))
          .flatMap(([kind, , names]) =>
            names.map((name) => fieldItem(kind, name, paths, statuses)),
          ),
      ],
    })),
  );
  return [...endpoints, ...schemaSections(needs), conventionSection(), ...errorSections()];
}

function fieldItem(
  kind: string,
  name: string,
  paths: readonly string[],
  statuses: readonly string[],
): Item {
  return {
    shown: `${kind} ${code(name)}`,
    isShownBy: (seen) =>
      paths.includes(seen.endpoint) &&
      statuses.includes(String(seen.status)) &&
      (kind === 'takes' ? seen.takes : seen.answers).includes(name),
  };
}

/** Fields of schemas that have a title: shown by any endpoint that uses them. */
function schemaSections(needs: readonly Need[]): readonly Section[] {
  const uses = needs.flatMap(({ paths, fields, statuses }) =>
    (fields ?? [])
      .filter(([, of]) => !paths.includes(of))
      .map(([kind, of, names]) => ({ of, kind, names, paths, statuses })),
  );
  return [...new Set(uses.map(({ of }) => of))].sort().map((of) => {
    const own = uses.filter((use) => use.of === of);
    const paths = own.flatMap((use) => use.paths);
    const statuses = own.flatMap((use) => use.statuses);
    const items = new Map(
      own.flatMap(({ kind, names }) =>
        names.map((name) => [`${kind} ${name}`, fieldItem(kind, name, paths, statuses)] as const),
      ),
    );
    return { heading: code(of), items: [...items.values()] };
  });
}

function conventionSection(): Section {
  const isShownBy = (name: string) => (seen: Observation) =>
    seen.status < 400 && [...seen.takes, ...seen.answers].includes(name);
  const items = conventions.map((name) => ({ shown: code(name), isShownBy: isShownBy(name) }));
  return { heading: 'Fields of any list or command', items };
}

function errorSections(): readonly Section[] {
  const items = Object.entries(errorStatuses).map(([name, status]) => ({
    shown: `${code(String(status))} ${code(name)}`,
    isShownBy: (seen: Observation) => seen.error === name && seen.status === status,
  }));
  return [{ heading: 'Errors', items }];
}

/**
 * The page that says which test shows which part of the interface.
 * @param seen the requests and responses of the tests
 * @param elsewhere what tests with other clients show; used only for items not in `seen`
 * @returns the page, and the items that no test has shown, as `<heading>: <item>`
 */
export function coveragePage(
  needs: readonly Need[],
  seen: readonly Observation[],
  elsewhere: readonly ElsewhereShown[] = [],
): { readonly text: string; readonly missing: readonly string[] } {
  const sections = sectionsOf(needs).map(({ heading, items }) => {
    const { rows, left } = coveredBy(items, seen);
    const others = elsewhere.flatMap(({ file, title, shows }) => {
      const shown = left.map((item) => item.shown).filter((item) => shows[heading]?.includes(item));
      return shown.length === 0 ? [] : [{ test: nameOf({ file, title }), items: shown }];
    });
    const missing = left.filter(({ shown }) => !others.some(({ items }) => items.includes(shown)));
    return {
      heading,
      rows: [...rows, ...others],
      missing: missing.map(({ shown }) => `${heading}: ${shown}`),
    };
  });
  const lines = sections.flatMap(({ heading, rows }) => [
    `## ${heading}`,
    '',
    ...rows.map(({ test, items }) => `- ${test}\n  - ${items.join(', ')}`),
    '',
  ]);
  const intro = [
    '# Coverage of the interface',
    '',
    'This page lists the tests of each part of the HTTP interface: every endpoint with its statuses and headers, every field, and every error. Tests that make requests are recorded, and each response is also checked against its schema.',
    '',
    'This page is generated by a test run: `npm run docs:coverage`.',
    '',
  ];
  return {
    text: `${[...intro, ...lines].join('\n').trimEnd()}\n`,
    missing: sections.flatMap(({ missing }) => missing),
  };
}

/** Names few tests for all items by repeatedly choosing the one that shows most of the rest. */
function coveredBy(items: readonly Item[], seen: readonly Observation[]) {
  const tests = new Map<string, Set<Item>>();
  for (const observation of seen) {
    for (const item of items) {
      if (!item.isShownBy(observation)) continue;
      const name = nameOf(observation);
      tests.set(name, (tests.get(name) ?? new Set()).add(item));
    }
  }
  const names = [...tests.keys()].sort();
  const rows: { readonly test: string; readonly items: readonly string[] }[] = [];
  let left = items.filter((item) => names.some((name) => tests.get(name)?.has(item)));
  while (left.length > 0) {
    const shares = names.map((test) => ({
      test,
      items: left.filter((it) => tests.get(test)?.has(it)),
    }));
    const best = shares.reduce((most, each) =>
      each.items.length > most.items.length ? each : most,
    );
    rows.push({ test: best.test, items: best.items.map(({ shown }) => shown) });
    left = left.filter((item) => !best.items.includes(item));
  }
  return { rows, left: items.filter((item) => !names.some((name) => tests.get(name)?.has(item))) };
}
