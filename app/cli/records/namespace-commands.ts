import type { Namespace } from '../../../api/schemas/namespace-schemas.ts';
import type { Quotas } from '../../../domain/namespaces/quotas.ts';
import { quotaNames, type QuotaName } from '../../../domain/namespaces/quota-names.ts';
import { usageError } from '../calling/command-errors.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { repeatable, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { shortTime } from '../terminal/units.ts';

const fields = {
  description: text('text', 'its purpose; "" for none'),
  quota: repeatable('name=number', 'a quota, such as tasks=100; replaces all quotas that you set'),
};

/** `svc namespaces …` */
export function addNamespaceCommands(line: CommandLine): void {
  const group = line.group('namespaces', 'list, create, change and remove namespaces');
  line.add(group, 'list', {
    description: 'list the namespaces that you administer',
    examples: ['namespaces list'],
    run: async (session) => {
      const items: Namespace[] = [];
      for (let cursor: string | undefined; ;) {
        const page = await session.client.call((api) =>
          api.namespaces.list({ limit: 200, cursor }),
        );
        items.push(...page.items);
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      session.answer({ items }, () =>
        session.table<Namespace>(
          [
            { title: 'NAME', cell: ({ name }) => name },
            { title: 'DESCRIPTION', maxWidth: 60, cell: ({ description }) => description ?? '' },
            { title: 'CREATED', cell: ({ created_at: at }) => (at === null ? '' : shortTime(at)) },
          ],
          items,
          'no namespaces',
        ),
      );
    },
  });
  line.add(group, 'show <name>', {
    description: 'show a namespace',
    examples: ['namespaces show payments'],
    run: (session, _options, [name = '']) =>
      session.show(
        (api) => api.namespaces.get(name),
        (namespace) => showNamespace(session, namespace),
      ),
  });
  line.add(group, 'create <name>', {
    description: 'create a namespace',
    options: fields,
    examples: [
      'namespaces create payments --description "The team of payments"',
      'namespaces create payments --quota tasks=100 --quota runs_per_minute=600',
    ],
    run: (session, { description = '', quota }, [name = '']) => {
      const body = { name, description: description || null, ...quotasOf(quota) };
      return session.show(
        (api) => api.namespaces.create(body),
        (namespace) => showNamespace(session, namespace),
      );
    },
  });
  line.add(group, 'update <name>', {
    description: 'change the description or the quotas of a namespace',
    options: fields,
    examples: [
      'namespaces update payments --description "Payments and refunds"',
      'namespaces update payments --quota tasks=200',
      'namespaces update payments --quota ""',
    ],
    run: async (session, { description, quota }, [name = '']) => {
      const described = description === undefined ? {} : { description: description || null };
      const body = { ...described, ...quotasOf(quota) };
      if (Object.keys(body).length === 0) throw usageError('give a --description or a --quota');
      await session.show(
        (api) => api.namespaces.update(name, body),
        (namespace) => showNamespace(session, namespace),
      );
    },
  });
  line.add(group, 'delete <name>', {
    description: 'remove a namespace without agents; its records stay',
    examples: ['namespaces delete payments'],
    run: (session, _options, [name = '']) => session.done((api) => api.namespaces.delete(name)),
  });
}

/** Parses quotas given as `name=number`. A single empty string means none. */
function quotasOf(given: readonly string[] | undefined): { readonly quotas?: Quotas } {
  if (given === undefined) return {};
  const quotas: Quotas = {};
  for (const each of given.filter((text) => text !== '')) {
    const [name = '', value = ''] = each.split('=', 2);
    if (!isQuota(name)) {
      throw usageError(`--quota: ${name} is not a quota; known are ${quotaNames.join(', ')}`);
    }
    if (!/^\d{1,12}$/.test(value)) throw usageError(`--quota: ${name} must be a whole number`);
    quotas[name] = Number(value);
  }
  return { quotas };
}

const isQuota = (name: string): name is QuotaName =>
  (quotaNames as readonly string[]).includes(name);

/** The namespace column of a list; left out if all records are in `default`. */
export function namespaceColumn<T extends { readonly namespace?: string }>(
  records: readonly T[],
): readonly RecordColumn<T>[] {
  if (records.every(({ namespace }) => namespace === undefined)) return [];
  return [{ title: 'NAMESPACE', cell: ({ namespace }) => namespace ?? 'default' }];
}

function showNamespace(session: Session, namespace: Namespace): string {
  const { name, description, quotas, quota_bounds, created_at, updated_at } = namespace;
  const words = (limits: Quotas): string | null =>
    Object.entries(limits)
      .map(([quota, limit]) => `${quota}=${limit}`)
      .join(', ') || null;
  return session.fields([
    ['name', name],
    ['description', description],
    ['quotas', words(quotas)],
    ['at most', words(quota_bounds)],
    ['created', created_at === null ? null : shortTime(created_at)],
    ['updated', updated_at === null ? null : shortTime(updated_at)],
  ]);
}
